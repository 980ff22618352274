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
	if !op.Live() || op.Result == Parked || op.Phase == Judging {
		return Next{}, false
	}
	orders := Orders(op, vm, 0)
	if len(orders) == 0 || orders[0].Node != node {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	switch op.Phase {
	case Discarding:
		if op.Revert {
			t.note("%s %s: its copy is gone", t.name(node), off)
			t.enter(Reverting)
		} else {
			t.discardedInVain(off, "its copy is gone")
		}
		return t.Next, true
	case Clearing:
		if op.Kind == Delete {
			return Next{}, false // its volumes are still there: the operation waits for the node, or for somebody to cancel it
		}
		t.clearedInVain(off)
		return t.Next, true
	case HandedOver:
		moved := t.resumeAnswered(Answer{
			Node: node, Step: op.Step, Outcome: OutcomeFailed, Error: t.name(node) + " " + off, Seen: Observation{State: model.DomainAbsent},
		})
		return t.Next, moved
	default:
		// The verdict decides what the order led to: in it the node counts as one that shows nothing.
		moved := t.apply(Answer{Node: node, Step: op.Step, Outcome: OutcomeAmbiguous, Error: t.name(node) + " " + off})
		return t.Next, moved
	}
}
