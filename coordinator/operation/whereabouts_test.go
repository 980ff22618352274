package operation

import (
	"strings"
	"testing"

	"berth/coordinator/model"
)

// A record keeps under which boot of its holder's host the VM runs, as the node says with its answer.
func TestTheBootOfTheHolderIsKept(t *testing.T) {
	seen := Observation{State: model.DomainRunning, Epoch: 5, Boot: "boot-2"}
	input := judging()
	input.VM.Whereabouts = model.Whereabouts{Boot: "boot-1"}
	input.Operation.SourceBoot = "boot-1"
	absent := Observation{State: model.DomainAbsent, Boot: "boot-1"}
	next := judged(t, input, absent, seen)
	if next.VM.Holder != "n2" || next.VM.Whereabouts != (model.Whereabouts{Boot: "boot-2"}) {
		t.Errorf("handed over to one that runs it: %+v", next.VM)
	}
	paused := seen
	paused.State = model.DomainPaused
	next = judged(t, input, absent, paused)
	if next.VM.Holder != "n2" || next.VM.Whereabouts != (model.Whereabouts{Boot: "boot-2"}) {
		t.Errorf("handed over to one that has it paused: %+v", next.VM)
	}
	later := Observation{State: model.DomainRunning, Boot: "boot-3"}
	next = mustStep(t, next.Operation, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: later})
	if next.VM.Whereabouts.Boot != "boot-3" {
		t.Errorf("the target has booted meanwhile: %+v", next.VM)
	}
}

// Where neither node has the VM and nobody has seen its end, it is missing: somebody may have moved it on.
func TestAVMThatNeitherNodeHasIsMissing(t *testing.T) {
	gone := Observation{State: model.DomainAbsent, Boot: "boot-1"}
	ended := gone
	ended.Ended = true
	for name, tc := range map[string]struct {
		source, target Observation
		holder         string
		missing        bool
	}{
		"nobody saw its end":                     {gone, gone, "n1", true},
		"it ended on the source":                 {ended, gone, "n1", false},
		"the source was switched off":            {Observation{}, gone, "n1", false},
		"it ended on the target":                 {gone, ended, "n2", false},
		"the source has ended what it let go":    {ended, gone, "n2", true},
		"it was handed over, and nobody saw how": {gone, gone, "n2", true},
		"it ended on the target in another stay": {gone, ended, "n1", true},
	} {
		input := judging()
		input.Operation.SourceBoot, input.VM.Holder = "boot-1", tc.holder
		next := judged(t, input, tc.source, tc.target)
		if next.VM.Holder != "" || next.VM.Whereabouts.Missing.IsZero() == tc.missing {
			t.Errorf("%s: %+v", name, next.VM.Whereabouts)
		}
		if !next.VM.EndUnwatched() { // somebody may have changed its disks on the way
			t.Errorf("%s: its next start looks at nothing: %+v", name, next.VM)
		}
	}
}

// Somebody has just moved a VM by hand to the node that Berth was to move it to. Its copy there has the epoch of before: the migration
// ends, and what was done by hand is followed.
func TestAMigrationToWhereSomebodyHasMovedTheVM(t *testing.T) {
	for _, state := range []model.DomainState{model.DomainRunning, model.DomainPaused} {
		input := judging()
		op := &input.Operation
		moved := Observation{State: state, Epoch: op.SourceEpoch, Boot: "boot-1"}
		next := judged(t, input, Observation{State: model.DomainAbsent, Boot: "boot-1"}, moved)
		if next.Operation.Result != Failed || !strings.Contains(next.Operation.Message, "somebody else has moved it to") {
			t.Errorf("%s: %s %s, %q", state, next.Operation.Phase, next.Operation.Result, next.Operation.Message)
		}
		if next.VM.Holder != "n1" || next.VM.Operation != "" || !next.VM.Whereabouts.Missing.IsZero() {
			t.Errorf("%s: %+v", state, next.VM)
		}
	}
}

// A stop that finds nothing proves nothing: somebody may have moved the VM, and then it runs on.
func TestAStopThatFindsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		seen, was Observation
		missing   bool
	}{
		"it was shut down":                   {seen: Observation{State: model.DomainAbsent, Boot: "boot-1"}},
		"it was gone, nobody saw how":        {seen: Observation{State: model.DomainAbsent, Boot: "boot-1", Missing: true}, missing: true},
		"its host has booted anew meanwhile": {seen: Observation{State: model.DomainAbsent, Boot: "boot-2", Missing: true}},
	} {
		op := Operation{ID: "o1", Kind: Stop, VM: "v1", Source: "n1", SourceName: "node1", Epoch: 3, Phase: Dispatched, Step: 1, Attempt: 1}
		vm := model.VM{ID: "v1", Holder: "n1", Epoch: 3, Operation: "o1", Whereabouts: model.Whereabouts{Boot: "boot-1"}}
		next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: tc.seen})
		if next.VM.Holder != "" || next.Operation.Result != Done || next.VM.Whereabouts.Missing.IsZero() == tc.missing ||
			strings.Contains(next.Operation.Message, "another node may run it") != tc.missing || next.VM.EndUnwatched() != tc.seen.Missing {
			t.Errorf("%s: %+v, %q", name, next.VM.Whereabouts, next.Operation.Message)
		}
	}
}
