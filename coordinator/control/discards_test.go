package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/outofband"
	"berth/coordinator/model"
)

// leftOn gives a VM a paused copy on a node, under epoch 7, that an operation had to leave there while the node was silent.
func (w *world) leftOn(node string, vm model.VM) {
	w.record(vm.ID, func(vm *model.VM) { vm.Discards = []model.Discard{{Node: node, Epoch: 7}} })
	w.shows(node, vm, func(d *model.Domain) { d.State, d.Epoch = model.DomainPaused, 7 })
	w.silence(node)
}

func discards(t lead.Task) bool { return t.Discard != nil }

// A copy that was left on a silent node goes when the node answers, and nothing that is said of the VM is about it.
func TestACopyThatWasLeftIsDiscardedWhenItsNodeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.leftOn("n2", vm)
		time.Sleep(time.Minute)
		if tasks := w.agents.performed(discards); len(tasks) != 0 || len(w.vm("web1").Discards) != 1 {
			t.Fatalf("while its node is silent: tasks %+v, left %+v", tasks, w.vm("web1").Discards)
		}
		w.speak("n2", "")
		time.Sleep(3 * outofband.Every)
		after := w.vm("web1")
		if tasks := w.agents.performed(discards); len(tasks) != 1 || tasks[0].node != "n2" ||
			*tasks[0].task.Discard != (lead.CopyOf{VM: vm.ID, Epoch: 7}) {
			t.Errorf("tasks %+v", tasks)
		}
		if len(after.Discards) != 0 || after.Condition.Text != "" || after.Holder != "n1" || after.Epoch != vm.Epoch {
			t.Errorf("vm %+v", after)
		}
		if events := w.told("vm.copy-discarded"); len(events) != 1 ||
			events[0].Message != "node2 answers again, and the paused copy that was left there, epoch 7, is gone" {
			t.Errorf("told %+v", events)
		}
		if len(w.told("vm.out-of-band")) != 0 {
			t.Errorf("told %+v", w.told("vm.out-of-band"))
		}
	})
}

// What somebody has let run is theirs to judge: beside the VM, where it is paused again, and alone.
func TestACopyThatSomebodyLetRunIsNotDiscarded(t *testing.T) {
	for name, c := range map[string]struct {
		holder    string
		suspended int
		condition string
	}{
		"beside the VM": {"n1", 1, "runs twice: "},
		"alone":         {"", 0, "out of band: it is running on node2 (epoch 7), where Berth has not started it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.on("n1", "web1", 1)
				w.leftOn("n2", vm)
				if c.holder == "" {
					w.facts.change("n1", without(vm.ID))
					w.record(vm.ID, func(vm *model.VM) { vm.Holder = "" })
				}
				w.edit("n2", vm, func(d *model.Domain) { d.State, d.Epoch = model.DomainRunning, 7 })
				w.speak("n2", "")
				time.Sleep(time.Minute)
				after := w.vm("web1")
				if len(after.Discards) != 0 || len(w.agents.performed(discards)) != 0 {
					t.Errorf("left %+v, tasks %+v", after.Discards, w.agents.performed(discards))
				}
				if after.Holder != c.holder || len(w.agents.performed(suspends)) != c.suspended ||
					!strings.HasPrefix(after.Condition.Text, c.condition) {
					t.Errorf("holder %q, condition %q, suspended %+v", after.Holder, after.Condition.Text, w.agents.performed(suspends))
				}
			})
		})
	}
}

// Nothing is left of a copy whose machine is off, or which is no member any more.
func TestACopyOnANodeThatIsOffIsGone(t *testing.T) {
	for name, ends := range map[string]func(w *world){
		"proven off": func(w *world) {
			w.node("n2", func(n *model.Node) { n.Fencing = model.Fencing{ID: "f1", Phase: model.FencingProven} })
		},
		"no member": func(w *world) { w.record(w.vm("web1").ID, func(vm *model.VM) { vm.Discards[0].Node = "n9" }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.leftOn("n2", w.on("n1", "web1", 1))
				ends(w)
				time.Sleep(3 * outofband.Every)
				if after := w.vm("web1"); len(after.Discards) != 0 || len(w.agents.performed(discards)) != 0 {
					t.Errorf("vm %+v, tasks %+v", after, w.agents.performed(discards))
				}
			})
		})
	}
}

// A VM that is to be restarted waits for the copy to go, where it is shown, and says so.
func TestARestartWaitsForTheCopyThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.available("web1")
		other := map[string]string{"n1": "n2", "n2": "n1", "n3": "n1"}[vm.Holder]
		w.leftOn(other, vm)
		w.agents.does(func(string, lead.Task) error { return errors.New("libvirt is away") })
		w.speak(other, "")
		w.facts.change(vm.Holder, without(vm.ID))
		w.record(vm.ID, func(vm *model.VM) { vm.Holder = "" })
		time.Sleep(time.Minute)
		after := w.vm("web1")
		if want := "it cannot be restarted: " + lead.NodeName(w.Store.Snapshot(),
			other) + " discards the paused copy first that was left there"; after.Holder != "" || after.Condition.Text != want {
			t.Fatalf("holder %q, condition %q, want %q", after.Holder, after.Condition.Text, want)
		}
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", RequestID: "by hand"})
		var refused *lead.Error
		if !errors.As(err, &refused) || refused.Code != lead.Busy || !strings.Contains(refused.Message, "discards the paused copy first") {
			t.Errorf("started by hand: %v", err)
		}
		_, err = w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID})
		if !errors.As(err, &refused) || refused.Code != lead.Conflict || !strings.Contains(refused.Message, "has left a paused copy of VM "+
			"\"web1\"") {
			t.Errorf("deleted: %v", err)
		}
		w.agents.does(nil)
		time.Sleep(time.Minute)
		if after = w.vm("web1"); after.Holder == "" || after.Condition.Text != "" || len(after.Discards) != 0 {
			t.Errorf("vm %+v", after)
		}
	})
}
