package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// A machine that boots from a copy of a node's disk says that it is the node. From then on the node is held, whichever of the two
// speaks: it is not proven to be off by a device, it gets nothing, and its boot does not count.
func TestANodeThatTwoMachinesSayTheyAreIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		is := func(hardware, boot string) {
			w.facts.change("n1", func(f *model.NodeFacts) {
				f.Hardware, f.Source, f.Boot, f.HeardAt = hardware, model.HardwareProduct, boot, time.Now()
			})
			time.Sleep(10 * time.Second)
		}
		is("aaaa", "b1")
		node, _ := w.Store.Snapshot().Node("n1")
		if node.Hardware != "aaaa" || node.HardwareSource != model.HardwareProduct || node.Boot != "b1" || node.Held() {
			t.Fatalf("%+v", node)
		}
		is("aaaa", "b2")
		is("bbbb", "b9")
		is("aaaa", "b2")
		node, _ = w.Store.Snapshot().Node("n1")
		if !node.Held() || node.Boot != "b2" || node.LastBoot != "b1" || node.Hardware != "aaaa" || node.Twin.Hardware != "bbbb" {
			t.Errorf("%+v", node)
		}
		events := w.told("node.held")
		const next = "berth node set node1 --machine"
		if len(events) != 1 || !strings.Contains(events[0].Message, "bbbb") || !strings.Contains(events[0].Message, next) {
			t.Errorf("told %+v", events)
		}
		// The copy is switched off and somebody decides: what it has said is no reason to hold the node again.
		is("bbbb", "b9")
		w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Suspect })
		w.node("n1", func(node *model.Node) {
			if !node.Decide("aaaa") {
				t.Error("the word was not taken")
			}
		})
		time.Sleep(10 * time.Second)
		if now, _ := w.Store.Snapshot().Node("n1"); now.Held() || now.Boot != "b2" {
			t.Errorf("it is held again: %+v", now)
		}
		one := evidence.Silence{
			Node: node, Liveness: model.Unreachable, Silent: time.Hour, After: time.Minute, Leased: time.Hour, HA: []string{"web"},
		}
		one.Node.Fence = model.FenceDevice{Method: model.FenceCommand, Program: "fence_x"}
		verdicts := evidence.Fencing(time.Hour, []evidence.Silence{one})
		if len(verdicts) != 1 || verdicts[0].Act != evidence.FenceHeld || !strings.Contains(verdicts[0].Next, "--machine") {
			t.Errorf("its device is asked: %+v", verdicts)
		}
	})
}

// The last that was heard as a node is a machine that it is not, as somebody has decided. That is no new boot of the node: it is proven
// to be off all the same.
func TestWhatTheWrongMachineHasSaidBringsNoNodeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.available("web1")
		time.Sleep(time.Hour) // it did not take its host down
		is := func(boot string, liveness model.Liveness) {
			w.facts.change(vm.Holder, func(f *model.NodeFacts) {
				f.Hardware, f.Source, f.Boot, f.HeardAt, f.Liveness = "aaaa", model.HardwareProduct, boot, time.Now(), liveness
			})
			time.Sleep(10 * time.Second)
		}
		is("b1", model.Up)
		is("copy", model.Up)
		is("b1", model.Up)
		is("copy", model.Suspect)
		w.node(vm.Holder, func(node *model.Node) {
			if !node.Held() || !node.Decide("b1") {
				t.Errorf("%+v", node)
			}
		})
		w.silence(vm.Holder)
		time.Sleep(model.DefaultFenceAfter + d.takes + time.Minute)
		if after := w.guest(vm.ID); !w.isFenced(vm.Holder) || d.asked() != 1 || after.Holder == vm.Holder || after.Holder == "" {
			t.Errorf("asked %d times: %+v, the VM: %+v", d.asked(), w.host(vm.Holder).Fencing, after)
		}
	})
}
