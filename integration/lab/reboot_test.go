package lab

import (
	"context"
	"fmt"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// A guest that is asked to restart, and one that is reset, boot anew on the same node in the same process. Nobody takes that for
// a stop, although libvirt tells of a shutdown in between.
func TestAGuestRestartsInPlace(t *testing.T) {
	l := raise(t, Options{Hosts: 1, Coordinators: 1})
	ctx, host := t.Context(), l.Hosts[0]
	start := starting("web", "128M", "--ha")
	if _, err := l.Berth(ctx, start...); err != nil {
		t.Fatal(err)
	}
	process := host.QEMUs()
	if len(process) != 1 {
		t.Fatalf("it runs as %+v", process)
	}
	before := awaitBoot(ctx, t, l, "web", "")
	for _, how := range [][]string{{"vm", "reboot", "web"}, {"vm", "reboot", "web", "--force"}} {
		if said, err := l.Berth(ctx, how...); err != nil {
			t.Fatalf("%v: %v\n%s", how, err, said)
		}
		after := awaitBoot(ctx, t, l, "web", before.Boot)
		if now := host.QEMUs(); len(now) != 1 || now[0].PID != process[0].PID {
			t.Errorf("%v: it ran as %+v, and runs as %+v", how, process, now)
		}
		var answer berthv1.GetVMResponse
		if err := l.Ask(ctx, &answer, "vm", "show", "web"); err != nil {
			t.Fatal(err)
		}
		vm, op := answer.GetVm(), answer.GetOperation()
		if vm.GetNode() != host.Name || vm.GetState() != berthv1.VMState_VM_STATE_RUNNING || vm.GetCondition() != "" || vm.GetEpoch() != 1 ||
			op.GetKind() != "reboot" || op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
			t.Errorf("%v: %v, after %v", how, vm, op)
		}
		before = after
	}
}

// awaitBoot waits for a tick of a guest's other boot that hears its power button.
func awaitBoot(ctx context.Context, t *testing.T, l *Lab, guest, other string) (last Tick) {
	t.Helper()
	err := await(ctx, guest+" to boot", time.Minute, func() (bool, error) {
		var err error
		if last, err = l.ReadTick(ctx, guest); err != nil {
			return false, err
		}
		if last.Boot == other || !last.Hears { // it is asked by its power button
			return false, fmt.Errorf("it is at %+v", last)
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}
