package operation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
)

// The kinds of operation that work on a snapshot of a VM's disks.
const (
	Snapshot Kind = "snapshot" // takes one
	Restore  Kind = "restore"  // has the disks be as they were then
	Forget   Kind = "forget"   // removes it
)

// The actions of these kinds.
const (
	ActSnapshot Action = "snapshot"
	ActRestore  Action = "restore"
	ActForget   Action = "forget"
)

const (
	// SnapshotPatience is how long taking or removing a snapshot waits for the answer of its node, which gives its hypervisor two minutes
	// and a guest half a minute to stand still.
	SnapshotPatience = 5 * time.Minute
	// RestorePatience is the same for restoring one. Whatever comes of it, the VM is not started before it was done.
	RestorePatience = 15 * time.Minute
)

// SnapshotWork is what an operation on a snapshot is about.
type SnapshotWork struct {
	Name   string               `json:"name"`
	Tag    string               `json:"tag"`
	Disks  []model.SnapshotDisk `json:"disks"`
	Off    bool                 `json:"off,omitempty"`    // the VM did not run when it began
	Freeze model.Freeze         `json:"freeze,omitempty"` // snapshot
	// Again tells of a removal that an earlier operation has not come to its end with the snapshot: a refusal undoes nothing of that.
	Again bool `json:"again,omitempty"`
	// Left are disks of the snapshot that the VM has no more, for people: what is in their files stays. Forget.
	Left string `json:"left,omitempty"`
	// Before is what an earlier operation has begun to revert to and not come to its end with: a refusal leaves it at that.
	Before string `json:"before,omitempty"`
}

// kindSnapshot has the snapshot in the record from its beginning, so that what may be in the files is never forgotten.
var kindSnapshot = snapshotting(Snapshot, ActSnapshot, func(t *transition, answer Answer) {
	work := t.Operation.Snapshot
	taken := t.VM.Snapshot(work.Name)
	if taken == nil {
		return
	}
	whole := *taken
	whole.Partial = false
	switch {
	case work.Off:
		whole.Consistency = model.ConsistentOff
	case answer.Frozen:
		whole.Consistency = model.ConsistentFrozen
	default:
		whole.Consistency = model.ConsistentCrash
	}
	t.VM.WithSnapshot(whole)
}, func(t *transition) { t.VM.WithoutSnapshot(t.Operation.Snapshot.Name) }, words{
	event: "vm.snapshot-taken", verb: "take snapshot %s", doing: "taking snapshot %s", ended: "snapshot %s was taken",
})

// kindRestore keeps the VM from being started until all its disks are as they were: one of two that is would be another machine.
var kindRestore = snapshotting(Restore, ActRestore, func(t *transition, _ Answer) { t.VM.Reverting = "" }, func(t *transition) {
	t.VM.Reverting = t.Operation.Snapshot.Before
}, words{
	event: "vm.snapshot-restored", verb: "revert to snapshot %s", doing: "reverting to snapshot %s", ended: "its disks are as in snapshot %s",
})

// kindForget takes the snapshot out of the record last.
var kindForget = snapshotting(Forget, ActForget, func(t *transition, _ Answer) {
	t.VM.WithoutSnapshot(t.Operation.Snapshot.Name)
}, func(t *transition) {
	if before := t.VM.Snapshot(t.Operation.Snapshot.Name); before != nil && !t.Operation.Snapshot.Again {
		whole := *before
		whole.Partial = false
		t.VM.WithSnapshot(whole)
	}
}, words{
	event: "vm.snapshot-deleted", verb: "delete snapshot %s", doing: "deleting snapshot %s", ended: "snapshot %s was deleted",
})

// words are how operations of a kind are told. Each has a place for the snapshot's name.
type words struct{ event, verb, doing, ended string }

// snapshotting is a kind of operation that works on a snapshot. Done changes the records with the answer, and untouched when nothing was
// begun. Whatever else it comes to, the record says that it was begun, and doing it again brings it to an end.
func snapshotting(name Kind, action Action, done func(*transition, Answer), untouched func(*transition), say words) kind {
	named := func(op *Operation, text string) string { return fmt.Sprintf(text, op.Snapshot.Name) }
	one := phase{
		node: atSource, off: snapshotOff,
		order: func(op *Operation, vm *model.VM) Order {
			epoch := vm.Epoch
			if op.Snapshot.Off { // a start that failed has left a higher one on the nodes
				epoch = vm.EpochsGiven()
			}
			return Order{Action: action, Epoch: epoch, Snapshot: *op.Snapshot}
		},
		answered: func(t *transition, answer Answer) bool {
			if answer.Outcome == OutcomeAmbiguous { // asked again; people are told once why
				told := t.Operation.Message == "" && answer.Error != ""
				if told {
					t.Operation.Message = answer.Error
				}
				return told
			}
			t.noteAnswer(answer)
			switch answer.Outcome {
			case OutcomeDone:
				done(t, answer)
				t.end(Done, strings.Join(slices.DeleteFunc([]string{answer.Note, t.Operation.Snapshot.Left}, isNothing), "; "))
			case OutcomeRefused:
				untouched(t)
				t.end(Failed, answer.Error)
			default:
				t.end(Failed, answer.Error+snapshotAgain(&t.Operation))
			}
			return true
		},
		unbegun: func(t *transition) {
			untouched(t)
			takenBack(t)
		},
	}
	patience := SnapshotPatience
	if name == Restore {
		patience = RestorePatience
	}
	one.overdue = func(t *transition, waited time.Duration) bool {
		late := waited >= patience
		if late {
			why := t.name(t.Operation.Source) + " did not answer for certain"
			if t.Operation.Message != "" {
				why += " (" + t.Operation.Message + ")"
			}
			t.end(Failed, why+snapshotAgain(&t.Operation))
		}
		return late
	}
	bound := Bound{Why: "its node has the order already", NextStep: fmt.Sprintf("it ends by itself within %s", patience)}
	return kind{
		name: name, phases: map[Phase]phase{Dispatched: one}, bound: bound, level: 3,
		begun: func(op *Operation) string {
			return "is to " + named(op, say.verb) + " on " + op.SourceName
		},
		doing: func(op *Operation) string { return named(op, say.doing) + " on " + op.SourceName },
		ended: func(op *Operation) (event, text string) {
			text = named(op, say.ended)
			if op.Message != "" {
				text += ": " + op.Message
			}
			return say.event, text
		},
	}
}

// snapshotOff ends an operation whose node is proven to be off. How far it had come shows in the files alone.
func snapshotOff(t *transition) bool {
	t.end(Failed, t.name(t.Operation.Source)+" "+off+snapshotAgain(&t.Operation))
	return true
}

// snapshotAgain says what brings an operation to an end that may have been done in part.
func snapshotAgain(op *Operation) string {
	if op.Kind == Restore {
		return fmt.Sprintf("; until it is reverted the VM is not started: repeat 'berth vm snapshot revert %s --name %s', or give it up with "+
			"'berth vm snapshot delete %s --name %s --force'", op.VMName, op.Snapshot.Name, op.VMName, op.Snapshot.Name)
	}
	return fmt.Sprintf("; 'berth vm snapshot delete %s --name %s' removes what may be left of it", op.VMName, op.Snapshot.Name)
}

func isNothing(text string) bool { return text == "" }
