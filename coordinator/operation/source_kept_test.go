package operation

import (
	"slices"
	"strings"
	"testing"

	"berth/coordinator/model"
)

// parkedWithDisks is a migration with disks that was parked because its source's host died. Its copies on the target are whole.
func parkedWithDisks(t *testing.T) (Operation, model.VM) {
	t.Helper()
	op, vm := copying()
	op.Phase = Judging
	next, found := Settle(op, vm, map[string]Observation{
		"n1": {State: model.DomainAbsent, Boot: "boot-2", Anew: true}, "n2": {State: model.DomainPaused, Epoch: 5},
	}, noon)
	if !found || next.Operation.Result != Parked || next.VM.Copies == nil || !next.VM.Copies.Whole {
		t.Fatalf("%+v, VM %+v", next.Operation, next.VM)
	}
	return next.Operation, next.VM
}

// Somebody keeps the source's guest, and it is gone before it has answered. What was copied whole is still there and still counts as whole.
func TestCopiesStayUntilTheSourceHasAnswered(t *testing.T) {
	for name, older := range map[string]bool{"parked by this release": false, "parked by one that did not note copies": true} {
		op, vm := parkedWithDisks(t)
		if older {
			vm.Copies = nil
		}
		seen := agents{"n1": shows(model.DomainRunning, 4), "n2": nothing}
		next, obstacle := Resolve(op, vm, KeepSource, seen, "operator/ann", noon)
		if obstacle != nil {
			t.Fatalf("%s: in the way: %+v", name, obstacle)
		}
		if order := Orders(next.Operation, next.VM, 1)[0]; order.Node != "n2" || order.Action != ActDiscard || len(order.Volumes) > 0 {
			t.Errorf("%s: ordered %s on %s with %d volumes", name, order.Action, order.Node, len(order.Volumes))
		}
		next = mustStep(t, next.Operation, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: nothing})
		next = mustStep(
			t, next.Operation, next.VM, Answer{Node: "n1", Outcome: OutcomeFailed, Error: "there is nothing to adopt", Seen: nothing},
		)
		if left := next.VM.Copies; next.Operation.Result != Parked || left == nil || left.Whole == older || left.Node != "n2" {
			t.Fatalf("%s: %+v, copies %+v", name, next.Operation, left)
		}
		if older {
			next.VM.Copies = nil
		}
		none, obstacle := Resolve(next.Operation, next.VM, KeepNone, agents{"n1": nothing, "n2": nothing}, "operator/ann", noon)
		if obstacle != nil {
			t.Fatalf("%s: in the way: %+v", name, obstacle)
		}
		end, asked := carry(t, none, agents{"n1": nothing, "n2": nothing})
		if left := end.VM.Copies; end.Operation.Live() || left == nil || left.Whole == older || len(left.Volumes) != 2 || len(asked) != 2 {
			t.Errorf("%s: neither kept after asking %v: %+v, copies %+v", name, asked, end.Operation, left)
		}
	}
}

// Once the source has answered its guest has the disks open, and the copies go.
func TestCopiesGoThatStayedUntilTheSourceAnswered(t *testing.T) {
	for state, want := range map[model.DomainState][]string{
		model.DomainRunning:         {"discard n2", "adopt n1", "clear n2"},
		model.DomainPausedMigration: {"discard n2", "adopt n1", "resume n1", "clear n2"},
	} {
		op, vm := parkedWithDisks(t)
		seen := agents{"n1": shows(state, 4), "n2": nothing}
		next, obstacle := Resolve(op, vm, KeepSource, seen, "operator/ann", noon)
		if obstacle != nil {
			t.Fatalf("%s: in the way: %+v", state, obstacle)
		}
		var asked []string
		for next.Operation.Live() {
			order := Orders(next.Operation, next.VM, 1)[0]
			asked = append(asked, string(order.Action)+" "+order.Node)
			if cleared := order.Action == ActClear; cleared != (len(order.Volumes) == 2) {
				t.Errorf("%s: ordered %s with %d volumes", state, order.Action, len(order.Volumes))
			}
			next = mustStep(t, next.Operation, next.VM, seen.answer(order))
		}
		if !slices.Equal(asked, want) || next.Operation.Result != Failed || next.VM.Copies != nil || next.VM.Holder != "n1" {
			t.Errorf("%s: asked %v, ended %s, VM %+v", state, asked, next.Operation.Result, next.VM)
		}
		if !strings.Contains(next.Operation.Message, "keep source") {
			t.Errorf("%s: message %q", state, next.Operation.Message)
		}
	}
}

// A VM was let go of because its source's host had died, and then both nodes run it. Who ends both has not seen the disks of either.
func TestCopiesStayWhereNobodyHasTheVMAndBothNodesRunIt(t *testing.T) {
	op, vm := copying()
	op.Phase, vm.Holder = Judging, ""
	next, found := Settle(op, vm, map[string]Observation{
		"n1": {State: model.DomainRunning, Epoch: 4}, "n2": {State: model.DomainRunning, Epoch: 5},
	}, noon)
	if !found || next.Operation.Result != Parked || next.VM.Copies == nil {
		t.Fatalf("%+v, VM %+v", next.Operation, next.VM)
	}
	none, obstacle := Resolve(next.Operation, next.VM, KeepNone, agents{"n1": nothing, "n2": nothing}, "operator/ann", noon)
	if obstacle != nil {
		t.Fatalf("in the way: %+v", obstacle)
	}
	for none.Operation.Live() {
		order := Orders(none.Operation, none.VM, 1)[0]
		if len(order.Volumes) > 0 {
			t.Errorf("ordered %s on %s with %d volumes", order.Action, order.Node, len(order.Volumes))
		}
		none = mustStep(t, none.Operation, none.VM, Answer{Node: order.Node, Outcome: OutcomeDone, Seen: nothing})
	}
	if none.VM.Copies == nil || !none.VM.Condition.Is(model.VolumesLeft) {
		t.Errorf("VM %+v", none.VM)
	}
}
