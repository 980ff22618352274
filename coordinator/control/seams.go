package control

import (
	"context"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Proposer commits commands. Package consensus implements it.
type Proposer interface {
	// Propose replicates the command and returns what applying it gave. The error is one of consensus.ErrNotLeader (not
	// sent), consensus.ErrUnknown (sent, outcome not known: propose again with the same key) or the context's.
	Propose(ctx context.Context, command state.Command) (state.Result, error)
	// Barrier returns when everything committed so far is applied here and this member still leads.
	Barrier(ctx context.Context) error
}

// Agents reach the nodes' agents. Package agents implements it.
type Agents interface {
	// Order sends without waiting. It reports whether a session to the node was there to send on; the answer comes to
	// the driver, and orders are sent again when a session opens.
	Order(term uint64, order operation.Order) (sent bool)
	// Cancel asks the agent to stop working on an order.
	Cancel(node, operation string, step uint32)
}

// Inventory knows the soft facts. Package inventory implements it.
type Inventory interface {
	// View joins the hard facts of a snapshot with what the agents reported, as of now.
	View(snapshot *state.Snapshot, now time.Time) *cluster.View
	// Facts are those of one node.
	Facts(node string, now time.Time) cluster.NodeFacts
	// Settled tells whether every node has reported to this leader, or has had the time to.
	Settled(snapshot *state.Snapshot, now time.Time) bool
}
