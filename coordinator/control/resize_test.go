package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// sizing is the request to give a VM another size at once.
func (w *world) sizing(vm model.VM, size model.Size) lifecycle.ActOnVM {
	return lifecycle.ActOnVM{Kind: operation.Resize, VM: vm.ID, Size: size, RequestID: w.NewID(), Caller: "operator/alice"}
}

// showsBalloon has a node show a guest with so much of its memory left by its balloon; 0: that is not told.
func (w *world) showsBalloon(vm model.VM, most, left units.Bytes) {
	domain := domainOf(vm)
	domain.Memory, domain.VCPUs = most, vm.RanSize.VCPUs
	if left > 0 {
		domain.Balloon, domain.Resident = &left, &left
	}
	w.showing(vm.Holder, domain)
}

func (w *world) promised(node string) units.Bytes {
	return w.Inventory.View(w.Store.Snapshot(), time.Now()).Node(node).PromisedUsed
}

// What somebody changes with Berth is in the guest and at the next start, and the node has as much to promise as the guest has given back.
func TestASizeIsChangedNowAndAtTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.on("n1", "web1", 4)
		if _, err := w.ActOnVM(t.Context(), w.sizing(vm, model.Size{Memory: 2 * units.GiB})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		orders := w.agents.ordered(operation.ActResize)
		if len(orders) != 1 || orders[0].Size != (model.Size{Memory: 2 * units.GiB}) {
			t.Fatalf("ordered %+v", orders)
		}
		is := w.guest(vm.ID)
		if is.Spec.Memory != 2*units.GiB || is.RanSize != (model.Size{Memory: 2 * units.GiB, VCPUs: 1}) {
			t.Fatalf("it is %+v, next %+v", is.RanSize, is.NextSize())
		}
		if by := is.ChangedLive(); len(by) != 1 || by[0].By != "operator/alice" {
			t.Errorf("changed by %+v", by)
		}
		for _, c := range []struct{ left, counts units.Bytes }{{0, 4}, {3, 3}, {2, 2}} {
			w.showsBalloon(is, 4*units.GiB, c.left*units.GiB)
			if promised := w.promised("n1"); promised != c.counts*units.GiB {
				t.Errorf("with %d GiB left it counts %s", c.left, promised)
			}
		}
		time.Sleep(time.Minute)
		if is = w.guest(vm.ID); is.Drift != nil || is.Condition.Text != "" {
			t.Errorf("it is taken for a change beside Berth: %+v, %q", is.Drift, is.Condition.Text)
		}
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2", RequestID: "m"})
		if err != nil || moved.Operation.Memory != 2*units.GiB {
			t.Fatalf("it moves with %s: %v", moved.Operation.Memory, err)
		}
		synctest.Wait()
		if is = w.guest(vm.ID); is.Holder != "n2" || is.RanSize.Memory != 2*units.GiB || !is.Ballooned {
			t.Errorf("moved: %+v", is)
		}
		w.stops(is)
		w.againWith(w.guest(vm.ID))
		if is = w.guest(vm.ID); is.RanSize.Memory != 2*units.GiB || is.Ballooned || len(is.ChangedLive()) > 0 {
			t.Errorf("started as %+v, ballooned %t", is.RanSize, is.Ballooned)
		}
		w.stops(is)
		w.record(vm.ID, func(vm *model.VM) { vm.Spec.MaxMemory = 3 * units.GiB })
		w.againWith(w.guest(vm.ID))
		is = w.guest(vm.ID)
		w.showsBalloon(is, 3*units.GiB, 2*units.GiB)
		if promised := w.promised(is.Holder); promised != 2*units.GiB || is.RanSize.Memory != 2*units.GiB {
			t.Errorf("started with room to grow it counts %s, %+v", promised, is.RanSize)
		}
		if _, err := w.ActOnVM(t.Context(), w.sizing(is, model.Size{Memory: 3 * units.GiB})); err != nil {
			t.Errorf("it does not grow: %v", err)
		}
		if _, err := w.ActOnVM(t.Context(), w.sizing(is, model.Size{Memory: 4 * units.GiB})); err == nil {
			t.Error("it grows beyond what it was started with")
		}
	})
}

// A guest that grows needs the room on its node, as if it were placed there, and its node is asked for nothing before.
func TestAGuestGrowsOnlyWhereThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.on("n1", "web1", 4)
		if _, err := w.ActOnVM(t.Context(), w.sizing(vm, model.Size{Memory: units.GiB})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		is := w.guest(vm.ID)
		w.showsBalloon(is, 4*units.GiB, units.GiB)
		_, err := w.ActOnVM(t.Context(), w.sizing(is, model.Size{Memory: 5 * units.GiB}))
		refusedAs(t, "beyond what it was started with", err, lead.Conflict, "was started with 4 GiB")
		w.showing("n1", model.Domain{UUID: "stranger", Name: "stranger", State: model.DomainRunning, Memory: 4 * units.GiB, VCPUs: 1})
		_, err = w.ActOnVM(t.Context(), w.sizing(is, model.Size{Memory: 4 * units.GiB}))
		refusedAs(t, "beyond its node", err, lead.NoNodeFits, "left to promise")
		if refused := (*lead.Error)(nil); !errors.As(err, &refused) || !strings.Contains(refused.NextStep, "berth vm migrate web1 --to ") {
			t.Errorf("it is told %v", err)
		}
		if orders := w.agents.ordered(operation.ActResize); len(orders) != 1 {
			t.Errorf("ordered %+v", orders)
		}

		// While it goes on the larger size counts, and nothing else gets that room.
		w.answer(func(operation.Order) *operation.Answer { return nil })
		if _, err = w.ActOnVM(t.Context(), w.sizing(is, model.Size{Memory: 3 * units.GiB / 2})); err != nil {
			t.Fatal(err)
		}
		if promised := w.promised("n1"); promised != 11*units.GiB/2 {
			t.Errorf("%s are promised", promised)
		}
	})
}

func TestTheSizeOfAStoppedVMIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		_, err := w.ActOnVM(t.Context(), w.sizing(vm, model.Size{VCPUs: 2}))
		refusedAs(t, "among earlier releases", err, lead.Conflict, "not all coordinators")
		w.store(state.RaiseLevel(state.FeatureLevel))
		w.agents.lacks = map[operation.Action][]string{operation.ActResize: {"resizes"}}
		_, err = w.ActOnVM(t.Context(), w.sizing(vm, model.Size{VCPUs: 2}))
		refusedAs(t, "with an earlier agent", err, lead.Conflict, "too old")
		w.stops(vm)
		op, err := w.ActOnVM(t.Context(), w.sizing(vm, model.Size{Memory: 3 * units.GiB, VCPUs: 2}))
		is := w.guest(vm.ID)
		if err != nil || op.Result != operation.Done || is.NextSize() != (model.Size{Memory: 3 * units.GiB, VCPUs: 2}) || is.Pending != nil {
			t.Errorf("%+v, %v; it has %+v", op, err, is.NextSize())
		}
	})
}
