package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// shows makes another node show the VM.
func (w *world) shows(node string, vm cluster.VM, change func(*cluster.Domain)) {
	vm.Holder = node
	w.show(vm)
	w.facts.change(node, func(f *cluster.NodeFacts) {
		for i := range f.Domains {
			if f.Domains[i].UUID == vm.ID && change != nil {
				change(&f.Domains[i])
			}
		}
	})
}

func (w *world) told(kind string) []cluster.Event {
	return slices.DeleteFunc(w.Store.Snapshot().Events(0), func(e cluster.Event) bool { return e.Kind != kind })
}

func TestAVMThatSomebodyMovedIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		before := w.on("n1", "web1", 1)
		time.Sleep(time.Minute)
		// While virsh migrates, both show it; the target's copy is paused.
		w.shows("n2", before, func(d *cluster.Domain) { d.State = cluster.DomainPaused })
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Holder != "n1" || after.Condition != "" {
			t.Fatalf("while it is moved: %+v", after)
		}
		w.facts.change("n1", without(before.ID))
		w.facts.change("n2", func(f *cluster.NodeFacts) { f.Domains[0].State = cluster.DomainRunning })
		moved := time.Now()
		time.Sleep(3 * followEvery)
		after := w.vm("web1")
		if after.Holder != "n2" || after.LastNode != "n2" || after.Epoch != before.Epoch || after.MovedAt.Before(moved) {
			t.Errorf("vm %+v", after)
		}
		events := w.told("vm.moved-elsewhere")
		if len(events) != 1 || events[0].Message != "was moved from node1 to node2 by somebody else" || events[0].Subject != "vm/web1" {
			t.Errorf("told %+v", events)
		}
		// Orders go to the new node, with the epoch that the domain has.
		if _, err := w.StopVM(t.Context(), StopVM{VM: before.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if stops := w.agents.ordered(operation.ActStop); len(stops) != 1 || stops[0].Node != "n2" || stops[0].Epoch != before.Epoch {
			t.Errorf("stop orders %+v", stops)
		}
	})
}

func TestWhatIsNotCertainIsNotFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*world, cluster.VM)
		condition string
	}{
		"both run it": {func(w *world, vm cluster.VM) { w.shows("n2", vm, nil) }, "its UUID is on node1 and node2: stop one copy by hand"},
		"two others run it": {func(w *world, vm cluster.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, nil)
			w.shows("n3", vm, nil)
		}, "its UUID is on node2 and node3: stop one copy by hand"},
		"the holder is silent": {func(w *world, vm cluster.VM) {
			w.facts.change("n1", func(f *cluster.NodeFacts) { f.Liveness = cluster.Unreachable })
			w.shows("n2", vm, nil)
		}, ""},
		"the holder could not list": {func(w *world, vm cluster.VM) {
			w.facts.change("n1", func(f *cluster.NodeFacts) { f.Domains, f.DomainsKnown = nil, false })
			w.shows("n2", vm, nil)
		}, ""},
		"another epoch": {func(w *world, vm cluster.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *cluster.Domain) { d.Epoch++ })
		}, ""},
		"not Berth's mark": {func(w *world, vm cluster.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *cluster.Domain) { d.Managed = false })
		}, ""},
		"paused elsewhere": {func(w *world, vm cluster.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *cluster.Domain) { d.State = cluster.DomainPaused })
		}, ""},
		"only for a moment": {func(w *world, vm cluster.VM) {
			time.Sleep(followEvery - time.Duration(time.Now().UnixNano())%followEvery - time.Second)
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, nil)
			time.Sleep(2 * time.Second) // one look
			w.facts.change("n2", without(vm.ID))
			w.show(vm)
		}, ""},
		"an operation works on it": {func(w *world, vm cluster.VM) {
			w.agents.mu.Lock()
			w.agents.script = func(operation.Order) *operation.Answer { return nil }
			w.agents.mu.Unlock()
			if _, err := w.StopVM(w.Context(), StopVM{VM: vm.ID}); err != nil {
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
				if after := w.vm("web1"); after.Holder != "n1" || after.Condition != c.condition || !after.MovedAt.IsZero() {
					t.Errorf("holder %s, condition %q", after.Holder, after.Condition)
				}
				if c.condition == "" {
					return
				}
				if events := w.told("vm.runs-twice"); len(events) != 1 || !strings.Contains(events[0].Message, "node2") {
					t.Errorf("told %+v", events)
				}
			})
		})
	}
}

func TestOneCopyLessEndsTheCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.shows("n2", vm, nil)
		time.Sleep(time.Minute)
		if w.vm("web1").Condition == "" {
			t.Fatal("two copies are no condition")
		}
		w.facts.change("n2", without(vm.ID))
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Condition != "" || after.Holder != "n1" {
			t.Errorf("vm %+v", after)
		}
		if events := w.told("vm.runs-once"); len(events) != 1 || events[0].Message != "only node1 runs it" {
			t.Errorf("told %+v", events)
		}
	})
}

// After a restore the nodes are asked first, by the quarantine.
func TestNothingIsFollowedInAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.facts.change("n3", func(f *cluster.NodeFacts) { f.Liveness = cluster.Unreachable })
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
		time.Sleep(3 * followEvery)
		after := w.vm("web1")
		if after.Holder != other(vm.Holder) || !strings.Contains(after.Condition, "its disk web1-root is recorded on node") {
			t.Errorf("on %s: %q", after.Holder, after.Condition)
		}
		if disk := w.disk("web1-root"); !slices.Equal(disk.Volume.Nodes, []string{vm.Holder}) {
			t.Errorf("its disk is on %v", disk.Volume.Nodes)
		}
	})
}
