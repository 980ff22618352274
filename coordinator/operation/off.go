package operation

import (
	"time"

	"berth/coordinator/cluster"
)

// off says of a node that it is proven to be off.
const off = "is proven to be off"

// Off takes an operation on whose orders in this phase a node waits no more: it is proven to be off, so it runs nothing and
// will carry out nothing that it was told. What it has on its disks is as it was. It reports false when the phase waits for
// another node, or for one that may still have something to say.
func Off(op Operation, vm cluster.VM, node string, at time.Time) (Next, bool) {
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
			return Next{}, false // its volumes are there still: it waits for the node, or for somebody to cancel it
		}
		t.clearedInVain(off)
		return t.Next, true
	case HandedOver:
		moved := t.resumeAnswered(Answer{
			Node: node, Step: op.Step, Outcome: OutcomeFailed, Error: t.name(node) + " " + off, Seen: Observation{State: cluster.DomainAbsent},
		})
		return t.Next, moved
	default:
		// What the order came to is for the verdict: there the node counts as one that shows nothing.
		moved := t.apply(Answer{Node: node, Step: op.Step, Outcome: OutcomeAmbiguous, Error: t.name(node) + " " + off})
		return t.Next, moved
	}
}
