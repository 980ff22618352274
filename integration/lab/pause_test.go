package lab

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// A guest that is paused stands still with its memory, and that is said with who has done it. Nobody takes it for hung, moves it or lets it
// run, the watch for what others do included, until it is resumed: by Berth, or beside it, which is followed.
func TestAGuestStandsStillUntilItIsResumed(t *testing.T) {
	l := raise(t, Options{Hosts: 2, Coordinators: 1})
	ctx := t.Context()
	start := starting("web", "128M", "--ha")
	if _, err := l.Berth(ctx, start...); err != nil {
		t.Fatal(err)
	}
	before := awaitBoot(ctx, t, l, "web", "")
	if said, err := l.Berth(ctx, "vm", "pause", "web", "--dry-run"); err != nil || !strings.Contains(said, "would be paused on") {
		t.Errorf("dry run: %v\n%s", err, said)
	}
	if said, err := l.Berth(ctx, "vm", "pause", "web"); err != nil {
		t.Fatalf("pause: %v\n%s", err, said)
	}
	awaitState(ctx, t, l, "web", berthv1.VMState_VM_STATE_PAUSED)
	time.Sleep(12 * time.Second) // two looks at what others have done
	vm := showVM(ctx, t, l, "web")
	if !strings.HasPrefix(vm.GetCondition(), "paused by operator/") || vm.GetPausedBy() == "" {
		t.Errorf("paused, it is shown as %q, by %q", vm.GetCondition(), vm.GetPausedBy())
	}
	for _, refused := range [][]string{
		{"vm", "migrate", "web"}, {"vm", "stop", "web"}, {"vm", "reboot", "web"}, {"vm", "reset", "web"}, {"vm", "pause", "web"},
	} {
		if said, err := l.Berth(ctx, refused...); err == nil {
			t.Errorf("%v of a paused VM went through:\n%s", refused, said)
		}
	}
	if said, err := l.Berth(ctx, "vm", "resume", "web"); err != nil {
		t.Fatalf("resume: %v\n%s", err, said)
	}
	vm = awaitState(ctx, t, l, "web", berthv1.VMState_VM_STATE_RUNNING)
	if after := awaitBoot(ctx, t, l, "web", ""); after.Boot != before.Boot || vm.GetPausedBy() != "" || vm.GetEpoch() != 1 {
		t.Errorf("it was at %+v, and is at %+v: %v", before, after, vm)
	}
	if said, err := l.Berth(ctx, "vm", "reset", "web"); err != nil {
		t.Fatalf("reset: %v\n%s", err, said)
	}
	awaitBoot(ctx, t, l, "web", before.Boot)
	if said, err := l.Berth(ctx, "vm", "pause", "web"); err != nil {
		t.Fatalf("pause again: %v\n%s", err, said)
	}
	holder := vm.GetNode()
	for _, host := range l.Hosts {
		if host.Name == holder {
			if said, err := host.Virsh(ctx, "resume", "web"); err != nil {
				t.Fatalf("virsh resume: %v\n%s", err, said)
			}
		}
	}
	err := await(ctx, "the record to follow", time.Minute, func() (bool, error) {
		vm := showVM(ctx, t, l, "web")
		if vm.GetPausedBy() != "" || vm.GetState() != berthv1.VMState_VM_STATE_RUNNING {
			return false, fmt.Errorf("it is %s, paused by %q", vm.GetState(), vm.GetPausedBy())
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func showVM(ctx context.Context, t *testing.T, l *Lab, name string) *berthv1.VM {
	t.Helper()
	var answer berthv1.GetVMResponse
	if err := l.Ask(ctx, &answer, "vm", "show", name); err != nil {
		t.Fatal(err)
	}
	return answer.GetVm()
}

func awaitState(ctx context.Context, t *testing.T, l *Lab, name string, want berthv1.VMState) (last *berthv1.VM) {
	t.Helper()
	err := await(ctx, name+" to be "+want.String(), time.Minute, func() (bool, error) {
		if last = showVM(ctx, t, l, name); last.GetState() != want {
			return false, fmt.Errorf("it is %s: %s", last.GetState(), last.GetCondition())
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}
