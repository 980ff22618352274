package control

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

func (w *world) snapshotting(kind operation.Kind, vm model.VM, name string) lifecycle.ActOnVM {
	return lifecycle.ActOnVM{
		Kind: kind, VM: vm.ID, Snapshot: lifecycle.Snapshot{Name: name}, RequestID: w.NewID(), Caller: "operator/alice",
	}
}

// does has it done, and returns what has become of the VM.
func (w *world) does(kind operation.Kind, vm model.VM, name string) model.VM {
	w.Helper()
	if _, err := w.ActOnVM(w.Context(), w.snapshotting(kind, vm, name)); err != nil {
		w.Fatalf("%s %s: %v", kind, name, err)
	}
	synctest.Wait()
	return w.guest(vm.ID)
}

// withSnapshots is a VM that runs with one qcow2 file.
func (w *world) withSnapshots() model.VM {
	w.Helper()
	vm := w.withImage(diskAt("vda", image))
	return w.guest(vm.ID)
}

func diskFormat(key, path, format string) model.Device {
	one := diskAt(key, path)
	one.Format = format
	return one
}

// A snapshot is taken, and the disks are reverted to it only while the VM is off; whatever is in between, the record has what the files
// have.
func TestASnapshotIsTakenRevertedToAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withSnapshots()
		is := w.does(operation.Snapshot, vm, "first")
		orders := w.agents.ordered(operation.ActSnapshot)
		if len(orders) != 1 || orders[0].Snapshot.Off || len(orders[0].Snapshot.Disks) != 1 || orders[0].Snapshot.Disks[0].Source.Path != image {
			t.Fatalf("ordered %+v", orders)
		}
		taken := is.Snapshot("first")
		if taken == nil || taken.Partial || taken.Tag != orders[0].Operation || taken.Consistency != model.ConsistentCrash ||
			taken.TakenBy != "operator/alice" {
			t.Fatalf("it has %+v", is.Snapshots)
		}
		refuse := func(what string, kind operation.Kind, name string, code lead.Code, saying string) {
			t.Helper()
			_, err := w.ActOnVM(t.Context(), w.snapshotting(kind, is, name))
			refusedAs(t, what, err, code, saying)
		}
		refuse("twice", operation.Snapshot, "first", lead.Conflict, "has a snapshot \"first\" already")
		refuse("one that is not there", operation.Forget, "other", lead.NotFound, "has no snapshot")
		refuse("reverted while it runs", operation.Restore, "first", lead.Conflict, "VM \"web1\" runs")
		w.stops(is)
		is = w.does(operation.Snapshot, vm, "second")
		if second := is.Snapshot("second"); second == nil || second.Consistency != model.ConsistentOff {
			t.Errorf("taken while it is off: %+v", is.Snapshots)
		}
		is = w.does(operation.Restore, vm, "first")
		if orders = w.agents.ordered(operation.ActRestore); len(orders) != 1 || orders[0].Snapshot.Tag != taken.Tag || !orders[0].Snapshot.Off {
			t.Fatalf("ordered %+v", orders)
		}
		if is.Reverting != "" || len(is.Snapshots) != 2 {
			t.Errorf("reverted, it is %+v", is)
		}
		if is = w.does(operation.Forget, vm, "first"); is.Snapshot("first") != nil || is.Snapshot("second") == nil {
			t.Errorf("it has %+v", is.Snapshots)
		}
		is = w.does(operation.Forget, vm, "second")
		for i := range model.MaxSnapshots {
			w.does(operation.Snapshot, vm, fmt.Sprint("s", i))
		}
		refuse("one more", operation.Snapshot, "more", lead.Conflict, "32 is the most")
	})
}

// The leader is lost while disks are being reverted. The next one brings it to an end, and until then nobody starts the VM with some of
// them.
func TestTheNextLeaderGoesOnWithARevert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		vm := w.withSnapshots()
		w.does(operation.Snapshot, vm, "first")
		w.stops(w.guest(vm.ID))
		absent := operation.Observation{State: model.DomainAbsent}
		fails := operation.Answer{Outcome: operation.OutcomeFailed, Error: "qemu-img failed", Seen: absent}
		w.answer(func(operation.Order) *operation.Answer { return &fails })
		is := w.does(operation.Restore, vm, "first")
		if is.Reverting != "first" {
			t.Fatalf("a revert that failed in the middle has left %+v", is)
		}
		start := func() error {
			_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: vm.Name, RequestID: w.NewID(), Caller: "operator/test"})
			return err
		}
		refusedAs(t, "a start", start(), lead.Conflict, "are being reverted to snapshot \"first\"")
		for _, kind := range []operation.Kind{operation.Snapshot, operation.Forget} {
			name := map[operation.Kind]string{operation.Snapshot: "new", operation.Forget: "first"}[kind]
			_, err := w.ActOnVM(t.Context(), w.snapshotting(kind, is, name))
			refusedAs(t, string(kind), err, lead.Conflict, "are being reverted")
		}
		w.answer(func(operation.Order) *operation.Answer {
			return &operation.Answer{Outcome: operation.OutcomeRefused, Error: "busy", Seen: operation.Observation{State: model.DomainAbsent}}
		})
		if is = w.does(operation.Restore, vm, "first"); is.Reverting != "first" {
			t.Fatal("a refusal has undone what the one before had left")
		}
		w.answer(func(operation.Order) *operation.Answer { return nil })
		is = w.does(operation.Restore, vm, "first")
		before := len(w.agents.ordered(operation.ActRestore))
		w.lose()
		time.Sleep(operation.RestorePatience - 2*time.Minute)
		if is = w.guest(vm.ID); is.Operation == "" || is.Reverting != "first" {
			t.Fatalf("without a leader it is %+v", is)
		}
		w.answer(obedient)
		w.lead(2)
		defer w.lose()
		time.Sleep(time.Minute)
		synctest.Wait()
		if is = w.guest(vm.ID); is.Operation != "" || is.Reverting != "" || len(w.agents.ordered(operation.ActRestore)) == before {
			t.Fatalf("the next leader has it at %+v", is)
		}
		if err := start(); err != nil {
			t.Error(err)
		}
	})
}

// A revert that can come to no end does not keep a VM off for ever: it ends after a while, and whoever says so starts the VM as it is. A
// start that has failed since is no reason for its nodes to refuse.
func TestARevertIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withSnapshots()
		w.does(operation.Snapshot, vm, "first")
		w.stops(w.guest(vm.ID))
		w.record(vm.ID, func(vm *model.VM) { vm.LastEpoch = vm.Epoch + 3 })
		absent := operation.Observation{State: model.DomainAbsent}
		w.answer(func(operation.Order) *operation.Answer {
			return &operation.Answer{Outcome: operation.OutcomeAmbiguous, Error: "the storage hangs", Seen: absent}
		})
		w.does(operation.Restore, vm, "first")
		time.Sleep(operation.RestorePatience + time.Minute)
		is := w.guest(vm.ID)
		op := w.Store.Snapshot().Operations()
		last := op[len(op)-1]
		if is.Operation != "" || is.Reverting != "first" || !strings.Contains(last.Message, "the storage hangs") ||
			!strings.Contains(last.Message, "--force") {
			t.Fatalf("it has %q, reverting to %q: %q", is.Operation, is.Reverting, last.Message)
		}
		if orders := w.agents.ordered(operation.ActRestore); orders[0].Epoch != is.EpochsGiven() {
			t.Errorf("ordered with epoch %d, and %d was given", orders[0].Epoch, is.EpochsGiven())
		}
		w.answer(obedient)
		request := w.snapshotting(operation.Forget, is, "first")
		request.Force = true
		if _, err := w.ActOnVM(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if is = w.guest(vm.ID); is.Reverting != "" || len(is.Snapshots) > 0 {
			t.Fatalf("given up, and it has %q and %+v", is.Reverting, is.Snapshots)
		}
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: vm.Name, RequestID: w.NewID(), Caller: "operator/test"}); err != nil {
			t.Error(err)
		}
	})
}

// A disk that keeps no snapshots, or that was changed since, is found before anything is begun.
func TestWhatCannotHaveASnapshotIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withSnapshots()
		refuse := func(what string, kind operation.Kind, saying string) {
			t.Helper()
			is := w.guest(vm.ID)
			_, err := w.ActOnVM(t.Context(), w.snapshotting(kind, is, "first"))
			refusedAs(t, what, err, lead.Conflict, saying)
			if after := w.guest(vm.ID); after.Revision != is.Revision {
				t.Errorf("%s has changed the record", what)
			}
		}
		w.changedTo(vm, diskAt("vda", image), diskFormat("vdb", attached, "raw"))
		refuse("a raw disk", operation.Snapshot, "disk vdb of VM \"web1\" ("+attached+") is of format raw")
		w.changedTo(vm, diskAt("vda", image), diskFormat("vdb", "/dev/vg/lv", "qcow2"))
		refuse("a device", operation.Snapshot, "is a block device")
		w.changedTo(vm, diskAt("vda", image), model.Device{Kind: "disk", Key: "vdb", Network: "rbd:pool/image", Format: "raw"})
		refuse("over a network", operation.Snapshot, "is rbd:pool/image")
		w.changedTo(vm, diskAt("vda", image))
		w.agents.lacks = map[operation.Action][]string{operation.ActSnapshot: {"snapshots"}}
		refuse("an earlier agent", operation.Snapshot, "too old")
		w.agents.lacks = nil

		w.does(operation.Snapshot, vm, "first")
		is := w.guest(vm.ID)
		detach := lifecycle.ActOnVM{
			Kind: operation.Detach, VM: vm.ID, Edits: []model.DeviceEdit{{Kind: "disk", Key: "vda", Was: image}}, RequestID: w.NewID(),
		}
		_, err := w.ActOnVM(t.Context(), detach)
		refusedAs(t, "a detach", err, lead.Conflict, "has snapshots (first)")
		w.stops(is)
		is = w.guest(vm.ID)
		is.Snapshots[0].Disks = append(is.Snapshots[0].Disks, model.SnapshotDisk{Target: "vdb", Source: model.DiskSource{Path: attached}})
		w.store(state.Command{VMs: []model.VM{is}}, state.Expectation{Table: state.VMs, ID: is.ID, Revision: is.Revision})
		refuse("other disks", operation.Restore, "disk vdb ("+attached+") has it, and was detached since")
		if is = w.does(operation.Forget, vm, "first"); is.Snapshots != nil {
			t.Errorf("it has %+v", is.Snapshots)
		}
		if orders := w.agents.ordered(operation.ActForget); len(orders) != 1 || len(orders[0].Snapshot.Disks) != 1 {
			t.Errorf("ordered %+v", orders)
		}
	})
}
