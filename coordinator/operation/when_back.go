package operation

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// AwaitPatience is how long an order waits for a node that is silent, unless it is to wait until that is back.
const AwaitPatience = model.UnreachableAfter

// Awaits tells whether an operation waits for its node to be heard again. It has given no order, and no leader before has: so it can be
// taken back.
func (o *Operation) Awaits() bool { return o.Phase == Queued && o.Kind != Start }

// Bound is why the operation cannot be taken back now; the zero value: it can be.
func (o *Operation) Bound() Bound {
	if o.Awaits() {
		return Bound{}
	}
	return o.Kind.Bound()
}

// Hears tells whether the order of an operation may go out to its node now, by what is known of that: it is heard. A node that has not
// listed its guests yet is Unlisted for a stop: nobody can know whether somebody's job holds the guest. One by force breaks off whatever
// there is.
func (o *Operation) Hears(node *model.NodeFacts) (turn, unlisted bool) {
	heard := node.Liveness.Answers()
	unlisted = heard && o.Kind == Stop && !o.Force && !node.DomainsKnown
	return heard && !unlisted, unlisted
}

// Unlisted says why a stop waits for a node that is heard: for a moment after an election, and longer while its libvirt does not answer.
func Unlisted(node *model.NodeFacts) string {
	why := "has not listed its guests, so nobody knows what the stop would break off"
	if node.LivenessReason != "" {
		why += ": " + node.LivenessReason
	}
	return why
}

// Await has a first record wait for its node, which is silent or has not listed its guests.
func Await(op *Operation, why string) {
	op.Phase = Queued
	until := fmt.Sprintf("for %s at most", AwaitPatience)
	if op.WhenBack {
		until = "until it is back"
	}
	op.Message = fmt.Sprintf("waits %s: %s %s", until, op.SourceName, why)
}

// awaiting is what to do about an operation whose node was silent when it was asked for.
func (d *Driver) awaiting(at time.Time) Todo {
	op := d.input.Operation
	t := newTransition(op, d.input.VM, at)
	switch {
	case op.Cancel && d.input.Unlisted:
		t.end(Failed, fmt.Sprintf("cancelled before %s had listed its guests: the guest was not asked", t.name(op.Source)))
	case op.Cancel:
		takenBack(t)
	case d.input.Turn && d.input.Held != "" && !d.isFenced(op.Source):
		if !op.WhenBack {
			t.end(Failed, fmt.Sprintf("the guest was not asked: %s; next step: 'berth vm %s %s --when-back' waits until that is over",
				d.input.Held, op.Kind, op.VMName))
			break
		}
		if waits := "waits until that is over: " + d.input.Held; op.Message != waits {
			t.Operation.Message = waits
			break
		}
		return Todo{Pause: LookEvery}
	case d.input.Turn || d.isFenced(op.Source):
		t.Operation.Message = ""
		t.enter(Dispatched)
	case !op.WhenBack && d.input.Unlisted && at.Sub(op.CreatedAt) >= AwaitPatience:
		neverListed(t)
	case !op.WhenBack && at.Sub(op.CreatedAt) >= AwaitPatience:
		takenBack(t)
	default:
		return Todo{Pause: LookEvery}
	}
	return Todo{Commit: &t.Next}
}

// givenUp gives up an order whose node has been silent for too long. If that node has begun it, it goes on; else it never will, once the
// node is heard. It reports false if nothing changes.
func givenUp(input *Input, at time.Time) (Next, bool) {
	op := input.Operation
	now := op.Kind.traits().phases[op.Phase]
	asked := op.WhenBack || op.Cancel || op.Attempt > 1 // it is wanted however late, or is taken back already, or was given before
	if !now.dated || asked || !input.Silent || at.Sub(op.UpdatedAt) < AwaitPatience || op.GivenUp != "" {
		return Next{}, false
	}
	t := newTransition(op, input.VM, at)
	t.Operation.GivenUp = fmt.Sprintf("%s was silent for %s", t.name(op.Source), AwaitPatience)
	message := t.Operation.GivenUp + ": unless the guest was asked before, it is not asked any more"
	if op.Message == message {
		return Next{}, false // members of an earlier release keep no GivenUp
	}
	t.Operation.Message = message
	t.note("%s", message)
	return t.Next, true
}

// takenBack ends an operation whose order no guest has seen.
func takenBack(t *transition) {
	op := &t.Operation
	asked := "the guest was not asked"
	if op.Attempt > 1 {
		asked += " again"
	}
	if op.Cancel {
		t.end(Failed, fmt.Sprintf("cancelled while %s was silent: %s", t.name(op.Source), asked))
		return
	}
	t.end(Failed, fmt.Sprintf("%s was silent for %s: it is taken back, and %s; next step: %s has it done when that is heard again",
		t.name(op.Source), AwaitPatience, asked, op.WhenBackAgain()))
}

// neverListed ends a stop whose node is heard, and has not said what guests it has.
func neverListed(t *transition) {
	op := &t.Operation
	t.end(Failed, fmt.Sprintf("%s did not list its guests for %s, so nobody knows what the stop would break off: it is taken back, and the "+
		"guest was not asked; next step: 'berth node show %s' tells what is wrong there; 'berth vm stop %s --interrupt-backup' stops it "+
		"whatever is at work on it", t.name(op.Source), AwaitPatience, t.name(op.Source), op.VMName))
}

// TakesBack tells whether cancelling ends the operation as long as its node has not begun the order.
func (o *Operation) TakesBack() bool { return o.Kind.traits().phases[o.Phase].unbegun != nil }

// doneLater says what an operation is to do once its node is heard again.
func (o *Operation) doneLater(what string) string {
	return fmt.Sprintf("to %s on %s; %s", what, o.SourceName, o.Message)
}

// later says what has begun, or what is to be once the node of the operation is heard again.
func (o *Operation) later(what, begun string) string {
	if o.Awaits() {
		return "is " + o.doneLater(what)
	}
	return begun
}

// WhenBackAgain is the command that asks for the operation once more, to be done when its node is heard again.
func (o *Operation) WhenBackAgain() string {
	if len(o.Edits) > 0 {
		return "the same command with --when-back"
	}
	return fmt.Sprintf("'berth vm %s %s --when-back'", o.Kind, o.VMName)
}
