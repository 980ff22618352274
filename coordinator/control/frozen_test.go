package control

import (
	"strings"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// What somebody else has frozen is not stopped, restarted, moved or kept in a snapshot, and a dry run says so as the order itself does,
// with what to do. Whoever says that it may be broken off, or freezes nothing, has his way.
func TestWhatSomebodyHasFrozenIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.agents.frozen = map[string]bool{vm.ID: true}
		act := func(request lifecycle.ActOnVM) error {
			request.VM, request.RequestID, request.Caller = vm.ID, w.NewID(), "operator/test"
			_, err := w.ActOnVM(t.Context(), request)
			return err
		}
		move := func(dry bool) error {
			_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2", DryRun: dry, Caller: "operator/test"})
			return err
		}
		kept := lifecycle.Snapshot{Name: "kept"}
		orders := len(w.agents.ordered(operation.ActStop)) + w.moves()
		for _, dry := range []bool{true, false} {
			for name, tc := range map[string]struct {
				err  error
				next string
			}{
				"stop":     {act(lifecycle.ActOnVM{Kind: operation.Stop, DryRun: dry}), "'berth vm stop web1 --force' ends it"},
				"reboot":   {act(lifecycle.ActOnVM{Kind: operation.Reboot, DryRun: dry}), "'berth vm reboot web1 --force' resets it"},
				"snapshot": {act(lifecycle.ActOnVM{Kind: operation.Snapshot, Snapshot: kept, DryRun: dry}), "or take it with --no-freeze"},
				"migrate":  {move(dry), "wait until that has ended"},
			} {
				refusal, is := isRefusal(tc.err)
				if !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, `somebody has frozen the file systems of VM "web1"`) ||
					!strings.Contains(refusal.NextStep, "'virsh domfsthaw web1' on ") || !strings.Contains(refusal.NextStep, tc.next) {
					t.Errorf("%s, dry run %t: %v, %+v", name, dry, tc.err, refusal)
				}
			}
		}
		if after := len(w.agents.ordered(operation.ActStop)) + w.moves(); after != orders {
			t.Errorf("it was tried: %d orders, and %d before", after, orders)
		}
		never := lifecycle.Snapshot{Name: "kept", Freeze: model.FreezeNever}
		for name, request := range map[string]lifecycle.ActOnVM{
			"a stop that may break it off": {Kind: operation.Stop, InterruptBackup: true}, "a stop by force": {Kind: operation.Stop, Force: true},
			"a reset":                         {Kind: operation.Reboot, Force: true},
			"a snapshot that does not freeze": {Kind: operation.Snapshot, Snapshot: never},
		} {
			request.DryRun = true
			if err := act(request); err != nil && strings.Contains(err.Error(), "frozen") {
				t.Errorf("%s: %v", name, err)
			}
		}
		drain := func() []string {
			drained, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", DryRun: true, Caller: "operator/test"})
			if err != nil || len(drained.Plan.Moves) != 1 || drained.Plan.Moves[0].Stays {
				t.Errorf("the node is drained as %+v, %v", drained.Plan.Moves, err)
			}
			return drained.Preflight.Warnings
		}
		if told := strings.Join(drain(), "\n"); !strings.Contains(told, "somebody has frozen the file systems of web1, as backups do") {
			t.Errorf("a drain warns of %q", told)
		}
		w.agents.frozen = nil
		if told := strings.Join(drain(), "\n"); strings.Contains(told, "frozen") {
			t.Errorf("nothing is frozen, and a drain warns of %q", told)
		}
		if err := move(false); err != nil {
			t.Errorf("it writes again: %v", err)
		}
	})
}
