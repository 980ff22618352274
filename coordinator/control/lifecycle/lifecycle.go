// Package lifecycle starts, stops, migrates, adds, deletes and releases VMs.
//
// A decision and the command that it leads to are made in one turn, so that each sees the ones before it. From then on a runner
// drives the operation: it sends the orders that the record asks for and commits what the agents' answers lead to. Runners begin
// from the records alone, so a new leader goes on where the last one ended.
package lifecycle

import (
	"sync"

	"berth/coordinator/control/drifts"
	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/volumes"
	"berth/coordinator/operation"
)

// Placer decides where VMs go. It commits nothing but decisions that led to no operation.
type Placer struct {
	*lead.Leader
}

// Operations drives operations from their records to their ends.
type Operations struct {
	*Placer

	fencing *fencing.Fencing
	drifts  *drifts.Drifts

	mu      sync.Mutex
	runners map[string]*runner // by operation ID
}

// Lifecycle works on VMs one by one. It is safe for concurrent use.
type Lifecycle struct {
	*Operations

	volumes *volumes.Volumes
	waiting waitingStarts
}

// New makes a Lifecycle that drives nothing yet.
func New(lead *lead.Leader, volumes *volumes.Volumes, fencing *fencing.Fencing, drifts *drifts.Drifts) *Lifecycle {
	return &Lifecycle{
		Operations: &Operations{Placer: &Placer{Leader: lead}, fencing: fencing, drifts: drifts, runners: map[string]*runner{}},
		volumes:    volumes,
	}
}

// Wait returns when no runner is left. The leadership has ended before.
func (o *Operations) Wait() {
	o.mu.Lock()
	runners := o.runners
	o.runners = map[string]*runner{}
	o.mu.Unlock()
	for _, r := range runners {
		<-r.done
	}
}

// runner drives one operation from its record to its end.
type runner struct {
	control *Operations
	id      string
	answers chan operation.Answer
	kick    chan struct{}
	done    chan struct{}
}

func (r *runner) deliver(answer operation.Answer) {
	select {
	case r.answers <- answer:
	default:
		r.control.Logger.Warn("an answer was dropped and will be asked for again", "operation", r.id, "node", answer.Node)
	}
}

func (r *runner) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}
