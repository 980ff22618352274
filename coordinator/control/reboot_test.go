package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

func TestRebootVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		reboot := lifecycle.ActOnVM{Kind: operation.Reboot, VM: vm.ID, RequestID: "r", Caller: "operator/test"}
		op, err := w.ActOnVM(t.Context(), reboot)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if done := w.operation(op.ID); done.Result != operation.Done || done.Source != vm.Holder || done.Target != "" {
			t.Errorf("ended as %+v", done)
		}
		after := w.vm("web1")
		if after.Holder != vm.Holder || after.Epoch != vm.Epoch || after.Operation != "" || !after.StartedAt.Equal(vm.StartedAt) {
			t.Errorf("the VM was %+v, and is %+v", vm, after)
		}
		if events := w.told("vm.rebooted"); len(events) != 1 || !strings.HasPrefix(events[0].Message, "has restarted in place on node") {
			t.Errorf("told %+v", events)
		}
		if again, err := w.ActOnVM(t.Context(), reboot); err != nil || again.ID != op.ID {
			t.Errorf("repeated: %+v, %v", again, err)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err = w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Reboot, VM: vm.ID})
		refusedAs(t, "stopped", err, lead.Conflict, "does not run")
		wantNext(t, err, "berth vm start web1")
		_, err = w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Reboot, VM: "nobody"})
		refusedAs(t, "unknown", err, lead.NotFound, "there is no VM")
	})
}

// While a guest restarts its node may show all that a guest does that ends. Nothing follows from that, and nothing else begins.
func TestNothingIsDoneAboutAGuestThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActReboot {
				return nil
			}
			return obedient(order)
		})
		defer w.lose()
		vm := w.running("web1")
		op, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Reboot, VM: vm.ID, RequestID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []model.DomainState{model.DomainShutoff, model.DomainPaused, model.DomainCrashed, model.DomainAbsent} {
			w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domain(vm.ID).State = state })
			time.Sleep(30 * time.Second)
		}
		if after := w.vm("web1"); after.Holder != vm.Holder || after.Desired != model.Running || after.Operation != op.ID {
			t.Errorf("while it restarts: %+v", after)
		}
		_, err = w.CancelOperation(t.Context(), op.ID, "operator/test")
		refusedAs(t, "cancelled", err, lead.Conflict, "cannot be taken back")
		_, err = w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder)})
		refusedAs(t, "moved meanwhile", err, lead.Busy, "")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domain(vm.ID).State = model.DomainRunning })
		time.Sleep(operation.RebootPatience)
		if after := w.operation(op.ID); after.Result != operation.Failed || w.vm("web1").Operation != "" {
			t.Errorf("its node never answered: %+v", after)
		}
	})
}
