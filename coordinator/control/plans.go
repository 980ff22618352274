package control

import (
	"context"
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/state"
)

func noPlan(id string) error {
	return &Error{
		Code: NotFound, Subject: "plan/" + id, Message: fmt.Sprintf("there is no plan %q", id), NextStep: "see 'berth plan list'",
	}
}

// DrainNode empties a node. Refusals are of type *Error.
func (c *Control) DrainNode(_ context.Context, request DrainNode) (Drained, error) {
	return Drained{}, noNode(request.Node)
}

// UndrainNode lets a node take VMs again. The plan is that of the VMs that come back; zero if none was asked for.
func (c *Control) UndrainNode(_ context.Context, request UndrainNode) (cluster.Plan, error) {
	return cluster.Plan{}, noNode(request.Node)
}

// ProposePlan plans how a cluster is evened out and keeps the plan until somebody applies or discards it.
func (c *Control) ProposePlan(_ context.Context, request ProposePlan) (cluster.Plan, error) {
	return cluster.Plan{}, &Error{
		Code: NotFound, Subject: "cluster/" + request.Cluster, Message: fmt.Sprintf("there is no cluster %q", request.Cluster),
		NextStep: "see 'berth cluster list'",
	}
}

// ApplyPlan sets a proposed plan going.
func (c *Control) ApplyPlan(_ context.Context, request ApplyPlan) (cluster.Plan, error) {
	return cluster.Plan{}, noPlan(request.Plan)
}

// DiscardPlan ends a proposed plan without any move.
func (c *Control) DiscardPlan(_ context.Context, request DiscardPlan) (cluster.Plan, error) {
	return cluster.Plan{}, noPlan(request.Plan)
}

// CancelPlan ends a running plan.
func (c *Control) CancelPlan(_ context.Context, request CancelPlan) (cluster.Plan, error) {
	return cluster.Plan{}, noPlan(request.Plan)
}

// StartVMs starts several VMs that are stopped. One that is refused does not stop the others.
func (c *Control) StartVMs(_ context.Context, request StartVMs) ([]StartedVM, error) {
	return nil, &Error{Code: Invalid, Subject: "vm", Message: "no VM is named", NextStep: "name the VMs to start"}
}

// Moves are a plan's moves and how far each has come, from the records alone.
func Moves(*state.Snapshot, cluster.Plan) []MoveNow { return nil }

// LastPass is what the last pass over a cluster came to; false before the first one of this leadership.
func (c *Control) LastPass(string) (LastPass, bool) { return LastPass{}, false }

func noNode(id string) error {
	return &Error{
		Code: NotFound, Subject: "node/" + id, Message: fmt.Sprintf("there is no node %q", id), NextStep: "see 'berth node list'",
	}
}
