package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
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
		if is.Holder != moved.Operation.Target || len(is.AtNextStart(nil)) != 1 {
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
		if is.RanSize != (model.Size{Memory: 2 * units.GiB, VCPUs: 1}) || is.Pending != nil || len(is.AtNextStart(nil)) > 0 {
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
