package operation

import (
	"slices"
	"time"

	"berth/coordinator/model"
)

// DiscardPatience is how long an operation waits for a silent node that still has to remove something. After that it
// continues without the node. A paused leftover there cannot run, because nobody will resume its epoch, and it is removed
// when the node answers again. Volumes there only take up room.
const DiscardPatience = 60 * time.Second

// silent says why an operation goes on without a node.
const silent = "did not answer for 1m0s" // DiscardPatience

func discardOrder(op *Operation, vm *model.VM) Order {
	order := Order{Action: ActDiscard, Epoch: op.leftoverEpoch()}
	if op.Leftover == op.Target && vm.Copies == nil && vm.Holder != op.Target { // once it was handed over they are its disks
		order.Volumes = op.Volumes // a source's volumes are cleared later, when its domain does not use them any more
	}
	return order
}

// leftoverEpoch is the epoch of what a migration discards or clears.
func (o *Operation) leftoverEpoch() uint64 {
	if o.Leftover == o.Source {
		return o.SourceEpoch
	}
	return o.Epoch
}

func discardAnswered(t *transition, answer Answer) bool {
	op := &t.Operation
	gone := answer.Outcome == OutcomeDone || t.shut(answer)
	switch {
	case gone && op.resolved():
		t.noteAnswer(answer)
		t.closeNext(op.Leftover)
	case gone && op.Revert:
		t.noteAnswer(answer)
		t.enter(Reverting)
	case gone:
		t.noteAnswer(answer)
		t.discarded()
	case answer.Seen.State == model.DomainRunning:
		t.noteAnswer(answer)
		t.enter(Judging) // what looked like a leftover runs
	default:
		return false // asked again until it is gone
	}
	return true
}

// shut tells that a node has nothing to discard and refuses the epoch: an earlier discard of this operation did that, and the
// same question came again after another look.
func (t *transition) shut(answer Answer) bool {
	switch seen := answer.Seen; {
	case answer.Code != StaleEpoch, seen.State == "", seen.State == model.DomainUnknown:
		return false
	case !seen.State.Holds():
		return !seen.JobActive // otherwise the guest has left and the node's hypervisor is cleaning up
	default:
		return seen.Epoch != t.Operation.leftoverEpoch()
	}
}

func (t *transition) discarded() {
	switch {
	case t.Operation.Leftover == t.Operation.Source:
		t.moved()
	case t.VM.Holder == "":
		t.lost(t.Operation.Message)
	default:
		t.end(Failed, t.Operation.Message)
	}
}

func revertAnswered(t *transition, answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome != OutcomeDone:
		t.enter(Judging)
	case t.Operation.resolved():
		sourceKept(t)
	default:
		t.end(Failed, t.Operation.Message)
	}
	return true
}

// discardOff continues when the node of the leftover is off.
func discardOff(t *transition) bool {
	op := &t.Operation
	switch {
	case op.resolved():
		return discardAnswered(t, Answer{Node: op.Leftover, Step: op.Step, Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	case op.Revert:
		t.note("%s %s: its copy is gone", t.name(op.Leftover), off)
		t.enter(Reverting)
	default:
		t.discardedInVain(off, "its copy is gone")
	}
	return true
}

// discardOverdue continues when the node of the leftover is silent, unless the source may resume only after it.
func discardOverdue(t *transition, waited time.Duration) bool {
	op := &t.Operation
	switch {
	case waited < DiscardPatience:
		return false
	case op.resolved():
		t.parkAgain(notAnsweredFor(waited))
	case op.Revert:
		return false
	default:
		t.VM.Discards = append(slices.Clone(t.VM.Discards), model.Discard{Node: op.Leftover, Epoch: op.leftoverEpoch()})
		t.discardedInVain(silent, "its leftover stays until it answers, paused, and nobody will resume it")
	}
	return true
}

// discardedInVain continues without the node that has a leftover to discard.
func (t *transition) discardedInVain(why, left string) {
	op := &t.Operation
	if op.Leftover == op.Target && len(op.Volumes) > 0 && t.VM.Copies == nil {
		left += "; " + stay(op.Volumes)
	}
	t.note("%s %s: %s", t.name(op.Leftover), why, left)
	t.discarded()
}
