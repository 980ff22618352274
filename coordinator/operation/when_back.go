package operation

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// AwaitPatience is how long an order waits for a node that was silent when it was asked for, unless it is to wait until that is back.
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

// Await has a first record wait for its node, which is silent.
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
	case op.Cancel:
		t.end(Failed, fmt.Sprintf("cancelled while %s was silent: the guest was not asked", t.name(op.Source)))
	case d.input.Turn || d.isFenced(op.Source):
		t.Operation.Message = ""
		t.enter(Dispatched)
	case !op.WhenBack && at.Sub(op.CreatedAt) >= AwaitPatience:
		t.end(Failed, fmt.Sprintf("%s was silent for %s: it is taken back, and the guest was not asked; next step: 'berth vm %s %s --when-back' "+
			"has it done when that is heard again", t.name(op.Source), AwaitPatience, op.Kind, op.VMName))
	default:
		return Todo{Pause: LookEvery}
	}
	return Todo{Commit: &t.Next}
}

// doneLater says what an operation is to do once its node is heard again.
func (o *Operation) doneLater(what string) string {
	return fmt.Sprintf("to %s on %s; %s", what, o.SourceName, o.Message)
}
