package operation

import (
	"slices"
	"strings"
	"testing"

	"berth/coordinator/model"
)

// A guest that may have run may have written to a disk of its node, also if its start is told to have failed.
func TestAStartThatMayHaveRunSaysWhere(t *testing.T) {
	absent := func(change func(*Observation)) Observation {
		seen := Observation{State: model.DomainAbsent, Boot: "b1"}
		change(&seen)
		return seen
	}
	for name, tc := range map[string]struct {
		seen Observation
		may  bool
	}{
		"never began":     {absent(func(*Observation) {}), false},
		"ended there":     {absent(func(o *Observation) { o.Ended = true }), true},
		"nothing tells":   {absent(func(o *Observation) { o.Unseen = true }), true},
		"has booted anew": {absent(func(o *Observation) { o.Boot = "b2" }), true},
		"is off":          {absent(func(o *Observation) { o.Boot, o.Anew = "", true }), true},
	} {
		op, vm := starting()
		op.TargetBoot = "b1"
		want := map[bool]string{true: "n1"}[tc.may]
		if next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Seen: tc.seen}); next.Wrote != want {
			t.Errorf("%s, and the answer is that it has failed: it may have written on %q", name, next.Wrote)
		}
		op = mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeAmbiguous}).Operation
		if next, settled := Settle(op, vm, map[string]Observation{"n1": tc.seen}, noon); !settled || next.Wrote != want {
			t.Errorf("%s, as its node shows: settled %t, it may have written on %q", name, settled, next.Wrote)
		}
	}
	op, vm := starting()
	op.TargetBoot = "b1"
	if next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Code: TooLate}); next.Wrote != "" {
		t.Errorf("its node will never begin it, and it may have written on %q", next.Wrote)
	}
	todo := NewDriver(0).Look(Input{Operation: op, VM: vm, Boot: "b2"}, noon)
	if todo.Commit == nil || todo.Commit.Wrote != "n1" {
		t.Errorf("its host has booted anew since the order: %+v", todo.Commit)
	}
	runs := Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning}}
	if next := mustStep(t, op, vm, runs); next.Wrote != "n1" {
		t.Errorf("it runs, and writes on %q", next.Wrote)
	}
}

// The record is all that tells where the disk is.
func TestAVMThatIsBoundIsKeptThoughItsFirstStartHasFailed(t *testing.T) {
	for _, bound := range []string{"", "n1"} {
		op, vm := starting()
		op.Pinned, op.TargetBoot, op.Disks = "n1", "b1", []string{"d1"}
		next := mustStep(t, op, vm, Answer{
			Node: "n1", Outcome: OutcomeFailed, Error: "no", Seen: Observation{State: model.DomainAbsent, Boot: "b2"},
		})
		later := vm
		later.Bound = bound
		next.VM.Bound = bound
		next.Bind(next.VM)
		abandoned := Abandon(op, later, "no node fits", noon)
		for _, ended := range []Next{next, abandoned} {
			told := strings.Contains(ended.Operation.Message, "the VM is kept")
			if kept := bound != ""; ended.DeleteVM == kept || slices.Contains(ended.DeleteDisks, "d1") == kept || told != kept {
				t.Errorf("bound to %q: deleted %t with %q, %q", bound, ended.DeleteVM, ended.DeleteDisks, ended.Operation.Message)
			}
		}
	}
}
