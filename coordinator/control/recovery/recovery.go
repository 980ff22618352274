// Package recovery brings back what was lost: VMs that are to be highly available and run nowhere, and records that were restored
// from a backup, once every node has shown what is true.
package recovery

import (
	"context"
	"sync"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Starter starts single VMs.
type Starter interface {
	// Restart starts a VM that is to be highly available and runs nowhere. Refusals are of type *lead.Error.
	Restart(ctx context.Context, vm string) error
	// Elsewhere says why a VM would be restarted nowhere if its node were lost now; empty: some node would take it.
	Elsewhere(snapshot *state.Snapshot, vm model.VM) string
}

// Fencing knows which nodes are proven to be off.
type Fencing interface {
	// Showing is the name of a node that is heard and shows a copy of a VM which holds memory; empty: none does. Asked only for nodes
	// that contradict the proof that they are off, others do not count.
	Showing(snapshot *state.Snapshot, vm string, contradicting bool) (node string)
}

// Plans are those of the restored records.
type Plans interface {
	// CancelRestored ends them in the command that lifts the quarantine.
	CancelRestored(snapshot *state.Snapshot, command *state.Command)
}

// readiness is what is known of VMs that no other node would take.
type readiness struct {
	mu      sync.Mutex
	nowhere map[string]string // why, by VM ID
}

// Recovery is that of one leadership after the other.
type Recovery struct {
	*lead.Leader

	starter Starter
	fencing Fencing
	plans   Plans
	ready   readiness
}

// New makes a Recovery that does nothing before its loops run.
func New(leader *lead.Leader, starter Starter, fencing Fencing, plans Plans) *Recovery {
	return &Recovery{Leader: leader, starter: starter, fencing: fencing, plans: plans}
}
