package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// stopped is a VM with a disk that has run on a node and was stopped there.
func (w *world) stopped() (vm model.VM, node string) {
	w.Helper()
	vm = w.withImage(diskAt("vda", image))
	w.stops(vm)
	return vm, vm.Holder
}

// ranLast has a node tell what a VM ran with when it ended there. The coordinator is told nothing else of it.
func (w *world) ranLast(node string, vm model.VM, live ...model.Device) {
	w.facts.change(node, func(f *model.NodeFacts) {
		f.Domains = nil
		f.LastRuns = map[string]model.LastRun{vm.ID: {Epoch: vm.Epoch, Devices: live}}
	})
}

// A disk was copied to another place and the guest ended at once, while nobody led. The next leader hears of it only when its node tells
// how its last run went, and somebody starts the VM in that moment.
func TestAChangeThatNobodyHeardOfBeforeTheEndIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm, node := w.stopped()
		w.lose()
		w.lead(2)
		w.ranLast(node, vm, diskAt("vda", overlay))
		if with := w.againWith(vm); with != "vda "+overlay {
			t.Errorf("it is started with %q", with)
		}
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Drift.Node != node {
			t.Errorf("its record has %+v", is.Drift)
		}
	})
}

// Somebody moves a VM by hand, changes a disk of it there and ends it, all before anybody has written down that it was moved. Its record
// has the node that it left.
func TestAChangeOnANodeThatNobodyKnewOfIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm := w.withImage(diskAt("vda", image))
		w.show(vm)
		to := "n1"
		if vm.Holder == to {
			to = "n2"
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		w.ranLast(to, vm, diskAt("vda", overlay))
		time.Sleep(time.Minute)
		if with := w.againWith(vm); with != "vda "+overlay {
			t.Errorf("it is started with %q", with)
		}
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Drift.Node != to {
			t.Errorf("its record has %+v", is.Drift)
		}
	})
}

// What a node tells of a run is kept without a start as well, and told once.
func TestWhatANodeTellsOfTheLastRunIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm, node := w.stopped()
		for range 2 { // as each new leader hears it
			w.ranLast(node, vm, diskAt("vda", overlay))
			w.facts.mu.Lock()
			w.facts.changed = append(w.facts.changed, model.ToldDevices{VM: vm.ID, Node: node, Epoch: vm.Epoch})
			w.facts.mu.Unlock()
			time.Sleep(2 * time.Second)
		}
		if told := w.told("vm.changed-beside"); len(told) != 1 || !strings.Contains(told[0].Message, overlay) {
			t.Errorf("told: %+v", told)
		}
		older := vm
		older.Epoch--
		w.ranLast(node, older, diskAt("vda", attached))
		if with := w.againWith(vm); with != "vda "+overlay {
			t.Errorf("by an older run it is started with %q", with)
		}
	})
}

// What somebody detaches with Berth after the end stays detached, whatever is told of the run before.
func TestWhatIsDetachedAfterTheEndStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm, node := w.stopped()
		w.ranLast(node, vm, diskAt("vda", image), diskAt("vdb", attached))
		_, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{
			Kind: operation.Detach, VM: vm.ID, RequestID: "detach", Caller: "operator/test",
			Edits: []model.DeviceEdit{{Kind: "disk", Key: "vdb", Was: attached}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.lose()
		w.lead(2)
		w.ranLast(node, vm, diskAt("vda", image), diskAt("vdb", attached))
		if with := w.againWith(vm); with != "" {
			t.Errorf("it is started with %q", with)
		}
	})
}
