package control

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// attaching is the request to give a VM a disk.
func (w *world) attaching(vm model.VM, path string) lifecycle.ActOnVM {
	w.Helper()
	baseline, err := drift.Baseline(w.Store.Snapshot(), &vm)
	if err != nil {
		w.Fatal(err)
	}
	guest := drift.Guest{VM: &vm, Baseline: baseline}
	edit, err := guest.AttachDisk(model.Disk{Path: path, Format: "qcow2"})
	if err != nil {
		w.Fatal(err)
	}
	return lifecycle.ActOnVM{
		Kind: operation.Attach, VM: vm.ID, Edits: []model.DeviceEdit{edit}, RequestID: w.NewID(), Caller: "operator/alice",
	}
}

// What somebody attaches with Berth is in the guest that runs and at its next start, and nobody takes it for a change beside Berth: not
// even when what the node tells of the guest trails.
func TestADiskIsAttachedNowAndAtTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		if _, err := w.ActOnVM(t.Context(), w.attaching(vm, attached)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		orders := w.agents.ordered(operation.ActAmend)
		if len(orders) != 1 || len(orders[0].Edits) != 1 || orders[0].Edits[0].Key != "vdb" {
			t.Fatalf("ordered %+v", orders)
		}
		w.facts.mu.Lock()
		w.facts.now = []model.Device{diskAt("vda", image), diskAt("vdb", attached)}
		w.facts.mu.Unlock()
		w.changedTo(vm, diskAt("vda", image)) // from before
		if is := w.guest(vm.ID); len(is.Drifted()) != 1 || is.Drifted()[0].By != "operator/alice" {
			t.Errorf("an old report changed its record to %+v", is.Drift)
		}
		w.changedTo(vm, diskAt("vda", image), diskAt("vdb", attached))
		time.Sleep(time.Minute)
		is := w.guest(vm.ID)
		if len(is.Drifted()) != 1 || is.Drifted()[0].By != "operator/alice" || is.Condition.Text != "" {
			t.Errorf("its record has %+v, condition %q", is.Drift, is.Condition.Text)
		}
		w.stops(is)
		if with := w.againWith(is); with != "vdb "+attached {
			t.Errorf("started with %q", with)
		}
	})
}

func TestAStoppedVMGetsADiskForItsNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.stops(vm)
		vm = w.guest(vm.ID)
		op, err := w.ActOnVM(t.Context(), w.attaching(vm, attached))
		if err != nil || op.Result != operation.Done || op.Phase != operation.Ended {
			t.Fatalf("%+v, %v", op, err)
		}
		if orders := w.agents.ordered(operation.ActAmend); len(orders) != 0 {
			t.Errorf("ordered %+v", orders)
		}
		if with := w.againWith(w.guest(vm.ID)); with != "vdb "+attached {
			t.Errorf("started with %q", with)
		}
	})
}

// Two guests that write to one disk destroy what is on it. So a disk of another VM is refused, whether that runs or not.
func TestADiskOfAnotherVMIsNotAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		other := w.guest(vm.ID)
		other.ID, other.Name, other.Holder, other.Operation, other.Revision = w.NewID(), "db", "", "", 0
		other.Desired, other.Spec = model.Stopped, model.VMSpec{
			Memory: units.GiB, VCPUs: 1, Disks: []model.Disk{{Path: attached, Format: "qcow2", Bus: "virtio"}},
		}
		w.store(state.Command{VMs: []model.VM{other}}, state.Expectation{Table: state.VMs, ID: other.ID})
		_, err := w.ActOnVM(t.Context(), w.attaching(w.guest(vm.ID), attached))
		refusedAs(t, "of a VM that is off", err, lead.Conflict, "is one of VM \"db\"")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) {
			f.Domains = append(f.Domains, model.Domain{
				UUID: "a-stranger", Name: "stranger", State: model.DomainRunning, Sources: []model.DiskSource{{Path: "/srv/strange"}},
			})
		})
		_, err = w.ActOnVM(t.Context(), w.attaching(w.guest(vm.ID), "/srv/strange"))
		refusedAs(t, "of a domain that runs", err, lead.Conflict, "domain \"stranger\"")
		dry := w.attaching(w.guest(vm.ID), "/srv/free")
		dry.DryRun = true
		if op, err := w.ActOnVM(t.Context(), dry); err != nil || op.ID != "" || len(w.agents.ordered(operation.ActAmend)) != 0 {
			t.Errorf("a dry run: %+v, %v", op, err)
		}
	})
}

// Two that are asked for at a time are not given one disk, though no record has it yet.
func TestADiskThatIsBeingAttachedIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		first, second := w.withImage(diskAt("vda", image)), w.on("n1", "web2", 1)
		w.answer(func(operation.Order) *operation.Answer { return nil })
		if _, err := w.ActOnVM(t.Context(), w.attaching(first, attached)); err != nil {
			t.Fatal(err)
		}
		_, err := w.ActOnVM(t.Context(), w.attaching(second, attached))
		refusedAs(t, "the same disk", err, lead.Conflict, `is being attached to VM "web1"`)
	})
}

// What the next start undoes is not the place for a change that somebody wants to keep.
func TestAChangeAfterARevertIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image), diskAt("vdc", "/srv/beside"))
		is := w.guest(vm.ID)
		reverted := *is.Drift
		reverted.Reverted = true
		is.Drift = &reverted
		w.store(state.Command{VMs: []model.VM{is}}, state.Expectation{Table: state.VMs, ID: is.ID, Revision: is.Revision})
		_, err := w.ActOnVM(t.Context(), w.attaching(w.guest(vm.ID), attached))
		refusedAs(t, "while it runs", err, lead.Conflict, "would undo this too")
		w.stops(vm)
		if _, err := w.ActOnVM(t.Context(), w.attaching(w.guest(vm.ID), attached)); err != nil {
			t.Fatal(err)
		}
		if with := w.againWith(w.guest(vm.ID)); with != "vdb "+attached {
			t.Errorf("started with %q", with)
		}
	})
}
