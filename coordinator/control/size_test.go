package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// resized gives a VM another size for its next start, as 'berth vm set' does.
func (w *world) resized(vm model.VM, memory units.Bytes) {
	w.record(vm.ID, func(vm *model.VM) {
		vm.Defer([]model.PendingChange{{Field: model.MemoryField, Was: vm.Spec.Memory.String(), Next: memory.String(), At: time.Now()}})
		vm.Spec.Memory = memory
	})
}

// A VM that runs is as large as it was started, whatever its next start will use: it can be moved, and others get the room.
func TestAVMIsAsLargeAsItWasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.resized(vm, 900*units.GiB)
		node := w.Inventory.View(w.Store.Snapshot(), time.Now()).Node(vm.Holder)
		if node.PromisedUsed != units.GiB {
			t.Errorf("%s has promised %s", node.Node.Name, node.PromisedUsed)
		}
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), RequestID: "m"})
		if err != nil || moved.Operation.Memory != units.GiB {
			t.Fatalf("it moves with %s: %v", moved.Operation.Memory, err)
		}
		synctest.Wait()
		is := w.guest(vm.ID)
		if is.Holder != moved.Operation.Target || len(drift.AtNextStart(&is, nil)) != 1 {
			t.Fatalf("after it has moved: %+v", is)
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		w.showing(is.Holder, model.Domain{
			UUID: is.ID, Name: is.Name, State: model.DomainRunning, Memory: units.GiB, VCPUs: 1, Managed: true, Epoch: is.Epoch,
		})
		if plan := w.ended(w.drain(is.Holder).ID, time.Minute); plan.State != model.PlanDone {
			t.Errorf("a drain of its node is %s", plan.State)
		}
	})
}

// What starts, by whomever, needs the room of its next start.
func TestAStartUsesTheSizeThatWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.resized(vm, 900*units.GiB)
		if told, err := w.Judge(w.guest(vm.ID), placement.ForStart, ""); err != nil || told.Outcome != placement.Refused ||
			!strings.Contains(told.Reason, "900 GiB") {
			t.Errorf("its next start: %s, %v", told.Reason, err)
		}
		w.stops(w.guest(vm.ID))
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", RequestID: "again"})
		refusedAs(t, "its start", err, lead.NoNodeFits, "900 GiB")
		w.resized(w.guest(vm.ID), 2*units.GiB)
		w.must(lifecycle.StartVM{Name: "web1", RequestID: "smaller"})
		synctest.Wait()
		is := w.guest(vm.ID)
		if is.RanSize != (model.Size{Memory: 2 * units.GiB, VCPUs: 1}) || is.Pending != nil || len(drift.AtNextStart(&is, nil)) > 0 {
			t.Errorf("it was started as %+v; %+v waits", is.RanSize, is.Pending)
		}
	})
}

// Only its node knows how large somebody else has started a VM.
func TestAVMThatSomebodyElseHasStartedIsAsLargeAsItsNodeShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		domain := w.foreign("n1", uuidA, "shop")
		if _, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, RequestID: "all", Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if vm := w.guest(domain.UUID); vm.Holder != "n1" || vm.RanSize != (model.Size{}) || vm.SizeOn(&domain).Memory != domain.Memory {
			t.Errorf("adopted as %+v", vm)
		}
	})
}

// 'virsh setvcpus' beside Berth: the guest keeps the vCPUs that it has, whoever leads when it is started again.
func TestTheNextStartHasTheVCPUsThatSomebodyGave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }() // of the last leader
		vm := w.withImage(diskAt("vda", image))
		w.edit(vm.Holder, vm, func(d *model.Domain) { d.VCPUs = vm.Spec.VCPUs + 2 })
		w.changedTo(vm, diskAt("vda", image))
		is := w.guest(vm.ID)
		if is.Spec.VCPUs != vm.Spec.VCPUs+2 || is.RanSize.VCPUs != is.Spec.VCPUs || is.Spec.Memory != vm.Spec.Memory || is.Pending != nil {
			t.Fatalf("its record has %+v, and that it runs with %+v", is.Spec, is.RanSize)
		}
		if told := w.told("vm.changed-beside"); len(told) != 1 || !strings.Contains(told[0].Message, "it has 3 vCPUs beside Berth, and had 1") {
			t.Errorf("told: %+v", told)
		}
		w.lose()
		w.lead(2)
		w.edit(vm.Holder, vm, func(d *model.Domain) { d.VCPUs = vm.Spec.VCPUs + 1 }) // nobody has told of this before the guest is stopped
		w.stops(is)
		w.againWith(is)
		if again := w.guest(vm.ID); again.RanSize.VCPUs != vm.Spec.VCPUs+1 {
			t.Errorf("it is started with %+v", again.RanSize)
		}
	})
}
