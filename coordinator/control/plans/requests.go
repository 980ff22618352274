package plans

import (
	"fmt"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/shared/units"
)

// DrainNode asks to take a node out of placement and to move its VMs away. It stays in maintenance afterwards. RequestID makes it
// idempotent, here and in every request.
type DrainNode struct {
	Node      string // ID
	DryRun    bool
	Parallel  int         // moves at once; 0: as the cluster says
	Bandwidth units.Bytes // a second and move; 0 means libvirt's default
	Reason    string      // of the maintenance
	RequestID string
	Caller    string
}

// Drained is what came of DrainNode. On a dry run the plan has no ID and nothing was changed.
type Drained struct {
	Plan      model.Plan
	Preflight balance.Preflight // as of the call; empty when the request was carried out before
}

// UndrainNode asks to let a node take VMs again. Its drain is cancelled if one runs; moves that copy already are completed.
type UndrainNode struct {
	Node      string // ID
	Return    bool   // bring back the VMs that its last drains moved away, where they still belong
	DryRun    bool   // of the return: nothing changes
	RequestID string
	Caller    string
}

// ProposePlan asks which moves would balance a cluster.
type ProposePlan struct {
	Cluster   string // name
	Most      int    // moves; 0: DefaultMost
	DryRun    bool   // keep nothing
	RequestID string
	Caller    string
}

// The most moves of a plan that somebody asks for.
const (
	DefaultMost = 50
	MaxMost     = 1000
)

// ApplyPlan asks to carry out a proposed plan.
type ApplyPlan struct {
	Plan      string // ID
	Parallel  int    // moves at once; 0: as the cluster says
	RequestID string
	Caller    string
}

// DiscardPlan asks to forget a proposed plan.
type DiscardPlan struct {
	Plan      string // ID
	RequestID string
	Caller    string
}

// CancelPlan asks to end a running plan: no further move begins.
type CancelPlan struct {
	Plan      string // ID
	Abort     bool   // give up moves that copy already, too; otherwise they are completed
	RequestID string
	Caller    string
}

// LastPass is what the last pass over a cluster came to. It is not replicated: a new leader has none at first.
type LastPass struct {
	At         time.Time
	Idle       string            // why nothing was moved; empty: something was, or was proposed
	Unrepaired map[string]string // by group ID: why what breaks it was not repaired
}

// checkLimits refuses limits that make no sense. 0 means that none is asked for.
func checkLimits(subject string, parallel int, bandwidth units.Bytes) error {
	switch {
	case parallel < 0 || parallel > model.MaxParallelMoves:
		return &lead.Error{
			Code: lead.Invalid, Subject: subject, Message: fmt.Sprintf("%d moves at once: want 1 to %d", parallel, model.MaxParallelMoves),
			NextStep: "leave it out for what the cluster says (parallel_moves)",
		}
	case bandwidth < 0:
		return &lead.Error{
			Code: lead.Invalid, Subject: subject, Message: fmt.Sprintf("a bandwidth of %d bytes a second", bandwidth),
			NextStep: "give what each move may take, 100MiB for instance, or leave it out",
		}
	}
	return nil
}
