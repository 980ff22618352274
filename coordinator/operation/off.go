package operation

import (
	"time"

	"berth/coordinator/model"
)

// off says that a node is proven to be off.
const off = "is proven to be off"

// Off continues an operation whose node is proven to be off: nothing runs there, and it will carry out none of its orders.
// Its disks are as they were. Off reports false when the phase waits for another node, or for a node that may still answer.
func Off(op Operation, vm model.VM, node string, at time.Time) (Next, bool) {
	if !op.Live() || op.Result == Parked {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	now, ordered := t.kind.phases[op.Phase]
	switch {
	case !ordered || now.node(&op) != node:
		return Next{}, false
	case now.off != nil:
		moved := now.off(t)
		return t.Next, moved
	default:
		// The verdict decides what the order led to: in it the node counts as one that shows nothing.
		moved := t.apply(Answer{Node: node, Step: op.Step, Outcome: OutcomeAmbiguous, Error: t.name(node) + " " + off})
		return t.Next, moved
	}
}
