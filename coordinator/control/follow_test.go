package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/outofband"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// shows makes another node show the VM, changed as the test says.
func (w *world) shows(node string, vm model.VM, change func(*model.Domain)) {
	domain := domainOf(vm)
	if change != nil {
		change(&domain)
	}
	w.showing(node, domain)
}

func (w *world) told(kind string) []model.Event {
	return slices.DeleteFunc(w.Store.Snapshot().Events(0), func(e model.Event) bool { return e.Kind != kind })
}

// Somebody moves a guest with virsh and has Berth stop it at once. Where it was there is nothing to stop, and that is not said to be done.
func TestAVMThatHasJustBeenMovedIsNotSaidToBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.facts.change("n1", func(f *model.NodeFacts) { f.Domains = nil })
		w.shows("n2", vm, nil)
		for _, kind := range []operation.Kind{operation.Stop, operation.Reboot} {
			_, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: kind, VM: vm.ID, RequestID: w.NewID()})
			if err == nil || !strings.Contains(err.Error(), "somebody has moved it") {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if is := w.vm("web1"); is.Operation != "" || is.Desired != model.Running {
			t.Errorf("its record is %+v", is)
		}
		time.Sleep(time.Minute)
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: w.NewID()}); err != nil {
			t.Errorf("when it is followed: %v", err)
		}
	})
}

func TestAVMThatSomebodyMovedIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		before := w.on("n1", "web1", 1)
		time.Sleep(time.Minute)
		// While virsh migrates, both show it; the target's copy is paused.
		w.shows("n2", before, func(d *model.Domain) { d.State = model.DomainPaused })
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Holder != "n1" || after.Condition.Text != "" {
			t.Fatalf("while it is moved: %+v", after)
		}
		w.facts.change("n1", without(before.ID))
		w.facts.change("n2", func(f *model.NodeFacts) { f.Domains[0].State = model.DomainRunning })
		moved := time.Now()
		time.Sleep(3 * outofband.Every)
		after := w.vm("web1")
		if after.Holder != "n2" || after.LastNode != "n2" || after.Epoch != before.Epoch+1 || after.MovedAt.Before(moved) {
			t.Errorf("vm %+v", after)
		}
		events := w.told("vm.moved-elsewhere")
		if len(events) != 1 || events[0].Message != "was moved from node1 to node2 by somebody else; epoch 2 from now on" ||
			events[0].Subject != "vm/web1" {
			t.Errorf("told %+v", events)
		}
		// The node that had it refuses it for good, and orders go to the new one, with the epoch that the domain has there.
		if refused := w.agents.performed(
			func(t lead.Task) bool { return t.Refuse != nil },
		); len(refused) != 1 || refused[0].node != "n1" || refused[0].task.Refuse.Epoch != 1 {
			t.Errorf("refused by %+v", refused)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: before.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if stops := w.agents.ordered(operation.ActStop); len(stops) != 1 || stops[0].Node != "n2" || stops[0].Epoch != after.Epoch {
			t.Errorf("stop orders %+v", stops)
		}
	})
}

func TestWhatIsNotCertainIsNotFollowed(t *testing.T) {
	const gone = "out of band: node1 does not run it any more, and "
	for name, c := range map[string]struct {
		change    func(*world, model.VM)
		condition string // how it begins
	}{
		"the holder is silent": {func(w *world, vm model.VM) {
			w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
			w.shows("n2", vm, nil)
		}, "out of band: it is running on node2 (epoch 1), and node1, which holds it, does not say"},
		"the holder could not list": {func(w *world, vm model.VM) {
			w.facts.change("n1", func(f *model.NodeFacts) { f.Domains, f.DomainsKnown = nil, false })
			w.shows("n2", vm, nil)
		}, "out of band: it is running on node2 (epoch 1), and node1, which holds it, does not say"},
		"the holder is back with nothing, and has not listed": {func(w *world, _ model.VM) {
			w.facts.change("n1", func(f *model.NodeFacts) { f.Domains, f.Inventory = nil, false })
		}, ""},
		"another epoch": {func(w *world, vm model.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *model.Domain) { d.Epoch++ })
		}, gone + "it is running on node2 (epoch 2)"},
		"not Berth's mark": {func(w *world, vm model.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *model.Domain) { d.Managed = false })
		}, gone + "it is running on node2 (without Berth's mark)"},
		"paused elsewhere": {func(w *world, vm model.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *model.Domain) { d.State = model.DomainPaused })
		}, gone + "it is paused on node2 (epoch 1)"},
		"another node is silent, and may have it": {func(w *world, vm model.VM) {
			w.facts.change("n1", without(vm.ID))
			w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		}, gone + "node3, where somebody may have moved it, cannot be asked"},
		"only for a moment": {func(w *world, vm model.VM) {
			time.Sleep(outofband.Every - time.Duration(time.Now().UnixNano())%outofband.Every - time.Second)
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, nil)
			time.Sleep(2 * time.Second) // one look
			w.facts.change("n2", without(vm.ID))
			w.show(vm)
		}, ""},
		"its node does not refuse it": {func(w *world, vm model.VM) {
			w.agents.does(func(_ string, task lead.Task) error {
				if task.Refuse != nil {
					return &lead.TaskError{Code: "busy", Message: "a start of the VM may still take effect"}
				}
				return nil
			})
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, nil)
		}, ""},
		"its node does not refuse what is gone": {func(w *world, vm model.VM) {
			w.agents.does(func(_ string, task lead.Task) error {
				if task.Refuse != nil {
					return &lead.TaskError{Code: "busy", Message: "a start of the VM may still take effect"}
				}
				return nil
			})
			w.facts.change("n1", without(vm.ID))
		}, ""},
		"an operation works on it": {func(w *world, vm model.VM) {
			w.agents.mu.Lock()
			w.agents.script = func(operation.Order) *operation.Answer { return nil }
			w.agents.mu.Unlock()
			if _, err := w.ActOnVM(w.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
				w.Fatal(err)
			}
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, nil)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.on("n1", "web1", 1)
				time.Sleep(time.Minute)
				c.change(w, vm)
				time.Sleep(time.Minute)
				after := w.vm("web1")
				if after.Holder != "n1" || after.Epoch != vm.Epoch || !strings.HasPrefix(after.Condition.Text, c.condition) ||
					(after.Condition.Text == "") != (c.condition == "") || !after.MovedAt.IsZero() {
					t.Errorf("holder %s, epoch %d, condition %q", after.Holder, after.Epoch, after.Condition.Text)
				}
				if events := w.told("vm.out-of-band"); c.condition != "" && len(events) != 1 {
					t.Errorf("told %+v", events)
				}
			})
		})
	}
}

// After a restore the nodes are asked first, by the quarantine.
func TestNothingIsFollowedInAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored from a backup"}})
		w.facts.change("n1", without(vm.ID))
		w.shows("n2", vm, nil)
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Holder != "n1" {
			t.Errorf("vm %+v", after)
		}
	})
}

// The disk of such a VM may be anywhere: its record is not changed, and people are told.
func TestAVMThatWasMovedAwayFromItsLocalDiskIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		vm := w.began("p-fast")
		time.Sleep(time.Minute)
		w.facts.change(vm.Holder, without(vm.ID))
		w.shows(other(vm.Holder), vm, nil)
		time.Sleep(6 * outofband.Every)
		after := w.vm("web1")
		if after.Holder != other(vm.Holder) || !strings.Contains(after.Condition.Text, "its disk web1-root is recorded on node") {
			t.Errorf("on %s: %q", after.Holder, after.Condition.Text)
		}
		if disk := w.disk("web1-root"); !slices.Equal(disk.Volume.Nodes, []string{vm.Holder}) {
			t.Errorf("its disk is on %v", disk.Volume.Nodes)
		}
	})
}
