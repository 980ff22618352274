package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// underSnapshot are agents on whose pool a disk is under a newer file.
func underSnapshot(order operation.Order) *operation.Answer {
	from := ""
	for _, disk := range order.Spec.Disks {
		from = disk.Path
	}
	for _, edit := range order.Edits {
		from = edit.Source.Path
	}
	if order.Action == operation.ActStart && order.Unwatched && from == image {
		return &operation.Answer{
			Outcome: operation.OutcomeFailed, Code: operation.Overlaid, Error: "it is under a snapshot",
			Overlays: []operation.Overlay{{Target: "vda", Path: image, Overlay: overlay, Format: "qcow2"}},
			Seen:     operation.Observation{State: model.DomainAbsent},
		}
	}
	return obedient(order)
}

// keep writes the record of a VM.
func (w *world) keep(vm model.VM) {
	w.Helper()
	w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
}

// lostUnseen is a VM that left its node while nobody looked.
func (w *world) lostUnseen(ha bool) model.VM {
	w.Helper()
	vm := w.withImage(diskAt("vda", image))
	if ha {
		vm = w.guest(vm.ID)
		vm.HA = true
		w.keep(vm)
	}
	w.facts.change(vm.Holder, without(vm.ID))
	time.Sleep(time.Minute)
	return w.guest(vm.ID)
}

// A guest was moved to a snapshot and ended while its agent was down. Its next start is refused with both versions, and not tried on other
// nodes, until somebody has decided.
func TestWhatIsOnTopOfADiskIsAskedAbout(t *testing.T) {
	for _, accepts := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, underSnapshot)
			defer func() { w.lose() }()
			vm := w.lostUnseen(false)
			if vm.Holder != "" || !vm.EndUnwatched() {
				t.Fatalf("%+v", vm)
			}
			before := len(w.agents.ordered(operation.ActStart))
			_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: vm.Name, RequestID: "again", Caller: "operator/test"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			vm = w.guest(vm.ID)
			if tries := len(w.agents.ordered(operation.ActStart)) - before; tries != 1 || vm.Holder != "" || len(vm.Edits()) != 1 {
				t.Fatalf("%d tries: %+v", tries, vm)
			}
			_, err = w.StartVM(t.Context(), lifecycle.StartVM{Name: vm.Name, RequestID: "once more", Caller: "operator/test"})
			if text := "disk vda is " + image + ", and " + overlay + " is on top of it and was written later"; err == nil ||
				!strings.Contains(err.Error(), text) {
				t.Errorf("the next start: %v", err)
			}
			want := image
			if accepts {
				want = overlay
				if vm, err = drift.Accepted(vm); err != nil {
					t.Fatal(err)
				}
			} else {
				vm = drift.Reverted(vm)
			}
			w.keep(vm)
			_, err = w.StartVM(t.Context(), lifecycle.StartVM{Name: vm.Name, RequestID: "decided", Caller: "operator/test"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			starts := w.agents.ordered(operation.ActStart)
			last := starts[len(starts)-1]
			from := last.Spec.Disks[0].Path
			for _, edit := range last.Edits {
				from = edit.Source.Path
			}
			if is := w.guest(vm.ID); is.Holder == "" || is.EndUnwatched() || from != want {
				t.Errorf("accepted %v: started from %s, %+v", accepts, from, is)
			}
		})
	}
}

// A restart that nobody has asked for is refused once, and its VM says why.
func TestARestartDoesNotGoRoundUnderASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, underSnapshot)
		defer func() { w.lose() }()
		vm := w.lostUnseen(true)
		time.Sleep(time.Hour)
		tries := 0
		for _, order := range w.agents.ordered(operation.ActStart) {
			if order.Unwatched {
				tries++
			}
		}
		if is := w.guest(vm.ID); tries != 1 || is.Holder != "" || is.Desired != model.Running || !is.Condition.Is(model.RestartRefused) {
			t.Errorf("%d tries: %+v", tries, is)
		}
	})
}

// Whose end was seen is started as ever.
func TestAStartWhoseEndWasSeenDoesNotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, underSnapshot)
		defer func() { w.lose() }()
		vm := w.withImage(diskAt("vda", image))
		time.Sleep(time.Second)
		w.facts.change(vm.Holder, ended(vm.ID))
		time.Sleep(time.Minute)
		if is := w.guest(vm.ID); is.Holder != "" || is.EndUnwatched() {
			t.Fatalf("%+v", is)
		}
	})
}
