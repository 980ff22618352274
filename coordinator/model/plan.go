package model

import (
	"time"

	"berth/shared/units"
)

// PlanKind is what a plan is for.
type PlanKind string

// The kinds of plan.
const (
	PlanDrain   PlanKind = "drain"   // empties a node
	PlanReturn  PlanKind = "return"  // brings back what a drain moved away
	PlanRepair  PlanKind = "repair"  // makes a group's rules hold again
	PlanBalance PlanKind = "balance" // evens the cluster out
)

// PlanState is how far a plan has come.
type PlanState string

// The states of a plan. Only those that are proposed or running live; the others have ended.
const (
	PlanProposed  PlanState = "proposed"  // waits for somebody to apply or discard it
	PlanRunning   PlanState = "running"   // its moves are carried out
	PlanCancelled PlanState = "cancelled" // no further move begins; one that copied was let end or aborted
	PlanDone      PlanState = "done"      // everything that could move has
	PlanFailed    PlanState = "failed"    // something that should have moved has not
	PlanDiscarded PlanState = "discarded" // nobody wants it any more, or another one took its place
)

// Live tells whether anything may still come of a plan in this state.
func (s PlanState) Live() bool { return s == PlanProposed || s == PlanRunning }

// Plan is the replicated record of a list of moves and why they are made. How far each move has come is not in it: it
// follows from the operations that carry the plan's ID. It is written when it is made, when somebody cancels it, and when
// it ends.
type Plan struct {
	ID       string    `json:"id"`
	Kind     PlanKind  `json:"kind"`
	State    PlanState `json:"state"`
	Cluster  string    `json:"cluster"`        // name
	Node     string    `json:"node,omitempty"` // node ID: what is drained, or was
	NodeName string    `json:"node_name,omitempty"`
	Group    string    `json:"group,omitempty"`  // group ID: of a repair
	Policy   string    `json:"policy,omitempty"` // name: of a balance plan
	Caller   string    `json:"caller"`
	Request  string    `json:"request,omitempty"` // the caller's idempotency key
	Reason   string    `json:"reason"`            // in words, with figures
	Moves    []Move    `json:"moves,omitempty"`

	// Limits of a plan that runs. 0: the cluster's default.
	Parallel  int         `json:"parallel,omitempty"`
	Bandwidth units.Bytes `json:"bandwidth,omitempty"` // a second and move; 0: libvirt's default

	// Before and Predicted are the balancer's figure of the cluster now and after all moves, in Unit; lower is better.
	// Observed is what it came to, when that was looked at: at ObservedAt.
	Unit       string    `json:"unit,omitempty"`
	Before     float64   `json:"before,omitempty"`
	Predicted  float64   `json:"predicted,omitempty"`
	Observed   float64   `json:"observed,omitempty"`
	ObservedAt time.Time `json:"observed_at,omitzero"`

	Message   string    `json:"message,omitempty"` // how it ended, in words
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Revision  uint64    `json:"revision"`
}

// Move is one VM of a plan.
type Move struct {
	VM         string      `json:"vm"` // ID
	VMName     string      `json:"vm_name"`
	Source     string      `json:"source"` // node ID
	SourceName string      `json:"source_name"`
	Target     string      `json:"target,omitempty"` // node ID, as planned: it is decided anew when its turn comes
	TargetName string      `json:"target_name,omitempty"`
	Memory     units.Bytes `json:"memory,omitempty"`
	Reason     string      `json:"reason,omitempty"` // why it moves; of one that stays, why it cannot
	Stays      bool        `json:"stays,omitempty"`  // it cannot move, and runs on where it is

	// Of a plan that has ended: how the move came out. The target is then where the VM went.
	Result   string `json:"result,omitempty"` // moved, failed, stays, left (its turn never came), gone
	Attempts int    `json:"attempts,omitempty"`
}

// The results of a move.
const (
	MoveMoved  = "moved"
	MoveFailed = "failed"
	MoveStays  = "stays"
	MoveLeft   = "left"
	MoveGone   = "gone" // it was stopped, deleted or moved by somebody else meanwhile
)
