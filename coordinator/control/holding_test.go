package control

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// since is when a group was seen broken, and when it was seen to hold again, from some time on; negative: it was not.
func (w *world) since(group string, from time.Time) (broken, held time.Duration) {
	w.Helper()
	record, there := w.Store.Snapshot().Resource("group-" + group)
	if !there {
		w.Fatalf("there is no group %s", group)
	}
	after := func(at time.Time) time.Duration {
		if at.IsZero() {
			return -1
		}
		return at.Sub(from)
	}
	return after(record.BrokenSince), after(record.HeldSince)
}

// A group is known to be broken, and to hold again, within a second of what makes it so. No pass is needed: none is made here.
func TestAGroupIsMarkedWhenItChanges(t *testing.T) {
	const soon = time.Second
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.callsWait.Store(true) // passes wait for them
		db, web := w.on("n1", "db", 1), w.on("n1", "web", 1)
		w.evened(map[string]string{model.SettingEnforcement: "off"})
		marked := func(name, what string, from time.Time) {
			t.Helper()
			broken, held := w.since(name, from)
			switch {
			case what == "broken" && broken >= 0 && broken <= soon && held < 0:
			case what == "holds" && broken < 0 && held >= 0 && held <= soon:
			case what == "always held" && broken < 0 && held < 0:
			default:
				t.Errorf("%s is not marked as one that %s: broken after %s, held after %s", name, what, broken, held)
			}
		}
		settle := func() { time.Sleep(soon); synctest.Wait() }

		made := time.Now()
		w.put(group("apart", rules("vms negative!"), []string{db.ID, web.ID}))
		w.put(group("near", rules("nodes positive"), []string{web.ID}, "n1"))
		byLabel := group("labelled", rules("vms negative"), nil)
		byLabel.Lists = map[string][]string{model.ListVMLabels: {"front"}}
		w.put(byLabel)
		onLabel := group("placed", rules("nodes negative"), []string{web.ID})
		onLabel.Lists = map[string][]string{model.ListNodeLabels: {"slow"}}
		w.put(onLabel)
		settle()
		marked("apart", "broken", made)
		for _, name := range []string{"near", "labelled", "placed"} {
			marked(name, "always held", made)
		}
		if told := w.told("group.broken"); len(told) != 1 || told[0].Subject != "group/apart" {
			t.Errorf("told %+v", told)
		}

		labelled := time.Now()
		for _, id := range []string{db.ID, web.ID} {
			w.record(id, func(vm *model.VM) { vm.Labels = []string{"front"} })
		}
		w.node("n1", func(n *model.Node) { n.Labels = []string{"slow"} })
		settle()
		marked("labelled", "broken", labelled)
		marked("placed", "broken", labelled)

		// A VM that moves is where it was until it has come: what its move repairs, and what it breaks, is told then.
		w.takes(10 * time.Minute)
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: web.ID, Node: "n2"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Minute)
		marked("apart", "broken", made)
		marked("near", "always held", made)
		time.Sleep(time.Minute)
		synctest.Wait()
		moved := w.vm("web").MovedAt
		settle()
		marked("apart", "holds", moved)
		marked("labelled", "holds", moved)
		marked("placed", "holds", moved)
		marked("near", "broken", moved)

		stopped := time.Now()
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: web.ID}); err != nil {
			t.Fatal(err)
		}
		settle()
		marked("near", "holds", stopped)
		if _, looked := w.LastPass(model.DefaultCluster); looked {
			if last, _ := w.LastPass(model.DefaultCluster); last.Idle == "" {
				t.Errorf("a pass was made: %+v", last)
			}
		}

		// The next leader finds what changed while nobody led.
		w.lose()
		w.node("n1", func(n *model.Node) { n.Labels = nil })
		w.record(web.ID, func(vm *model.VM) { vm.Holder, vm.Desired = "n1", model.Running })
		led := time.Now()
		w.lead(2)
		settle()
		marked("apart", "broken", led)
		marked("labelled", "broken", led)
		marked("near", "holds", stopped)
	})
}
