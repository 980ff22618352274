package control

import (
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// DrainNode asks for a node to be emptied: it is taken out of placement, and its VMs are moved away. It stays in
// maintenance afterwards.
type DrainNode struct {
	Node      string // ID
	DryRun    bool
	Parallel  int         // moves at once; 0: as the cluster says
	Bandwidth units.Bytes // a second and move; 0 means libvirt's default
	Reason    string      // of the maintenance
	RequestID string
	Caller    string
}

// Drained is what DrainNode gave. On a dry run the plan has no ID and nothing was changed.
type Drained struct {
	Plan      cluster.Plan
	Preflight balance.Preflight // of the moment of the call; empty when the request was carried out before
}

// UndrainNode asks for a node to take VMs again. A drain of it that runs is cancelled: moves that copy end as they do.
type UndrainNode struct {
	Node      string // ID
	Return    bool   // bring back the VMs that its last drains moved away, where they still belong
	DryRun    bool   // of the return: nothing changes
	RequestID string
	Caller    string
}

// ProposePlan asks for the moves that would even a cluster out.
type ProposePlan struct {
	Cluster   string // name
	Most      int    // moves; 0: DefaultMost
	DryRun    bool   // keep nothing
	RequestID string
	Caller    string
}

// How many moves a plan that somebody asked for has at most.
const (
	DefaultMost = 50
	MaxMost     = 1000
)

// ApplyPlan asks for a proposed plan to be carried out.
type ApplyPlan struct {
	Plan      string // ID
	Parallel  int    // moves at once; 0: as the cluster says
	RequestID string
	Caller    string
}

// DiscardPlan asks for a proposed plan to be forgotten.
type DiscardPlan struct {
	Plan      string // ID
	RequestID string
	Caller    string
}

// CancelPlan asks for a running plan to end: no further move begins.
type CancelPlan struct {
	Plan      string // ID
	Abort     bool   // give up moves that copy, too; otherwise they end as they do
	RequestID string
	Caller    string
}

// StartVMs asks for several stopped VMs to be started. Those that hard rules tie together are placed together.
type StartVMs struct {
	VMs       []string // IDs
	Node      string   // ID of the only node that will do, for all; empty: any
	DryRun    bool
	RequestID string
	Caller    string
}

// StartedVM is what came of one of several starts.
type StartedVM struct {
	Started
	VMName string
	Unit   []string // names of the others that were placed together with it, ascending
	Err    error    // of type *Error, when it was refused
}

// MoveNow is one move of a plan, and how far it is.
type MoveNow struct {
	cluster.Move
	State     string              // one of the Move states
	Operation operation.Operation // the last one; no ID: none has begun
	Message   string              // how the last attempt failed, or what the move waits for
}

// The states of a move. The last four are cluster's results, and final once the plan has ended.
const (
	MoveWaiting = "waiting"
	MoveMoving  = "moving"
	MoveMoved   = cluster.MoveMoved
	MoveFailed  = cluster.MoveFailed
	MoveStays   = cluster.MoveStays
	MoveLeft    = cluster.MoveLeft
	MoveGone    = cluster.MoveGone
)

// LastPass is what the last look of the leader's loop at a cluster came to. It is soft: a new leader has none at first.
type LastPass struct {
	At         time.Time
	Idle       string            // why nothing was moved; empty: something was, or was proposed
	Unrepaired map[string]string // by group ID: why what breaks it was not repaired
}
