package control

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/state"
	"berth/shared/units"
)

// DrainNode takes a node out of placement and moves its VMs away, as one change: no VM comes to it from then on. It stays in
// maintenance when the drain is over. No VM is ever stopped: what cannot move runs on and is listed. Refusals are of type
// *Error.
func (c *Control) DrainNode(ctx context.Context, request DrainNode) (Drained, error) {
	if err := sensibleLimits("node/"+request.Node, request.Parallel, request.Bandwidth); err != nil {
		return Drained{}, err
	}
	var drained Drained
	err := c.plan(ctx, "node/"+request.Node, func() (again retry, err error) {
		drained, again, err = c.drainOnce(ctx, request)
		return again, err
	})
	return drained, err
}

func sensibleLimits(subject string, parallel int, bandwidth units.Bytes) error {
	switch {
	case parallel < 0 || parallel > cluster.MaxParallelMoves:
		return &Error{
			Code: Invalid, Subject: subject, Message: fmt.Sprintf("%d moves at once: want 1 to %d", parallel, cluster.MaxParallelMoves),
			NextStep: "leave it out for what the cluster says (parallel_moves)",
		}
	case bandwidth < 0:
		return &Error{
			Code: Invalid, Subject: subject, Message: fmt.Sprintf("a bandwidth of %d bytes a second", bandwidth),
			NextStep: "give what each move may take, 100MiB for instance, or leave it out",
		}
	}
	return nil
}

func (c *Control) drainOnce(ctx context.Context, request DrainNode) (Drained, retry, error) {
	snapshot, again, err := c.ready()
	if again != decided || err != nil {
		return Drained{}, again, err
	}
	if plan, repeated := snapshot.PlanByRequest(request.RequestID); repeated {
		return Drained{Plan: plan}, decided, nil
	}
	node, known := snapshot.Node(request.Node)
	if !known {
		return Drained{}, decided, noNode(request.Node)
	}
	if err := c.drainable(snapshot, &node); err != nil {
		return Drained{}, decided, err
	}
	fleet, err := c.fleet(snapshot, c.Inventory.View(snapshot, c.Now()), clusterOf(&node))
	if err != nil {
		return Drained{}, decided, err
	}
	parallel := cmp.Or(request.Parallel, fleet.Settings.ParallelMoves)
	preflight := balance.Drain(fleet, node.ID, parallel, request.Bandwidth)
	if preflight.Refused != "" {
		return Drained{}, decided, &Error{
			Code: Conflict, Subject: "node/" + node.Name, Message: fmt.Sprintf("node %s cannot be drained: %s", node.Name, preflight.Refused),
			NextStep: fmt.Sprintf("'berth node maintenance %s on' keeps further VMs away and leaves those that run where they are", node.Name),
		}
	}
	plan := preflight.Plan
	plan.Kind, plan.Cluster, plan.Node, plan.NodeName = cluster.PlanDrain, clusterOf(&node), node.ID, node.Name
	c.commission(&plan, request.Caller, request.RequestID)
	plan.Parallel, plan.Bandwidth = parallel, request.Bandwidth
	if request.DryRun {
		return Drained{Plan: plan, Preflight: preflight}, decided, nil
	}
	command := c.planCommand(&plan, drainKind)
	command.Key = cmp.Or(request.RequestID, command.Key)
	node.Maintenance, node.MaintenanceReason = true, cmp.Or(request.Reason, node.MaintenanceReason, "drained")
	command.Nodes = []cluster.Node{node}
	command.Expect = append(command.Expect, unmoved(snapshot, node.ID))
	if back, comes := returnTo(snapshot, node.ID); comes && back.State == cluster.PlanRunning {
		back.State, back.UpdatedAt, back.Message = cluster.PlanCancelled, plan.CreatedAt, node.Name+" is drained again"
		c.include(&command, &back, "no further move begins: "+back.Message)
	}
	plan, again, err = c.commitPlan(ctx, command, plan)
	return Drained{Plan: plan, Preflight: preflight}, again, err
}

// commission makes a plan one that runs as soon as it is kept.
func (c *Control) commission(plan *cluster.Plan, caller, request string) {
	plan.State, plan.Caller, plan.Request, plan.CreatedAt = cluster.PlanRunning, caller, request, c.Now()
	plan.UpdatedAt = plan.CreatedAt
}

// drainable refuses what a drain could only fail at.
func (c *Control) drainable(snapshot *state.Snapshot, node *cluster.Node) error {
	subject := "node/" + node.Name
	if plan, drains := drainOf(snapshot, node.ID); drains {
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("node %s is being drained already, by plan %s", node.Name, plan.ID),
			NextStep: fmt.Sprintf("follow it with 'berth plan watch %s', or end it with 'berth plan cancel %s'", plan.ID, plan.ID),
		}
	}
	if facts := c.Inventory.Facts(node.ID, c.Now()); facts.Liveness != cluster.Up {
		return &Error{
			Code: Unavailable, Subject: subject,
			Message:  fmt.Sprintf("node %s is %s (%s): its VMs cannot be moved", node.Name, facts.Liveness, facts.LivenessReason),
			NextStep: fmt.Sprintf("look at its agent and libvirt; 'berth node maintenance %s on' keeps further VMs away", node.Name),
		}
	}
	return nil
}

// drainOf is the drain of a node that has not ended, and returnTo what still brings VMs back to it.
func drainOf(snapshot *state.Snapshot, node string) (cluster.Plan, bool) {
	return unfinishedOf(snapshot, node, cluster.PlanDrain)
}

func returnTo(snapshot *state.Snapshot, node string) (cluster.Plan, bool) {
	return unfinishedOf(snapshot, node, cluster.PlanReturn)
}

func unfinishedOf(snapshot *state.Snapshot, node string, kind cluster.PlanKind) (cluster.Plan, bool) {
	plans := snapshot.Plans()
	for i := range plans {
		if plan := &plans[i]; plan.Kind == kind && plan.Node == node && unfinished(plan) {
			return *plan, true
		}
	}
	return cluster.Plan{}, false
}

// UndrainNode lets a node take VMs again, and ends its drain if one runs: no further move begins. The plan is that of the
// VMs that come back; zero if none was asked for.
func (c *Control) UndrainNode(ctx context.Context, request UndrainNode) (cluster.Plan, error) {
	var plan cluster.Plan
	err := c.plan(ctx, "node/"+request.Node, func() (again retry, err error) {
		plan, again, err = c.undrainOnce(ctx, request)
		return again, err
	})
	return plan, err
}

func (c *Control) undrainOnce(ctx context.Context, request UndrainNode) (cluster.Plan, retry, error) {
	snapshot, again, err := c.ready()
	if again != decided || err != nil {
		return cluster.Plan{}, again, err
	}
	if plan, repeated := snapshot.PlanByRequest(request.RequestID); repeated || snapshot.Answered(request.RequestID, undrainKind) {
		return plan, decided, nil
	}
	node, known := snapshot.Node(request.Node)
	if !known {
		return cluster.Plan{}, decided, noNode(request.Node)
	}
	var back cluster.Plan
	if request.Return {
		if back, err = c.back(snapshot, node, request); err != nil || request.DryRun {
			return back, decided, err
		}
	}
	drain, drains := drainOf(snapshot, node.ID)
	if request.DryRun || !node.Maintenance && !drains && len(back.Moves) == 0 {
		return back, decided, nil
	}
	return c.reopen(ctx, snapshot, node, drain, back, request)
}

// back is the plan of the VMs that come back to a node.
func (c *Control) back(snapshot *state.Snapshot, node cluster.Node, request UndrainNode) (cluster.Plan, error) {
	if facts := c.Inventory.Facts(node.ID, c.Now()); facts.Liveness != cluster.Up {
		return cluster.Plan{}, &Error{
			Code: Unavailable, Subject: "node/" + node.Name,
			Message:  fmt.Sprintf("node %s is %s (%s): no VM can come back", node.Name, facts.Liveness, facts.LivenessReason),
			NextStep: "look at its agent and libvirt, then ask again",
		}
	}
	if plan, comes := returnTo(snapshot, node.ID); comes {
		return cluster.Plan{}, &Error{
			Code: Conflict, Subject: "node/" + node.Name, Message: fmt.Sprintf("VMs are on their way back to node %s already, by plan %s", node.Name, plan.ID),
			NextStep: fmt.Sprintf("follow it with 'berth plan watch %s'", plan.ID),
		}
	}
	drained, was := drainsOf(snapshot, node.ID)
	if !was {
		return cluster.Plan{}, &Error{
			Code: Conflict, Subject: "node/" + node.Name, Message: fmt.Sprintf("node %s was not drained: no VM is known to belong there", node.Name),
			NextStep: fmt.Sprintf("leave --return out, or move VMs with 'berth vm migrate VM --to %s'", node.Name),
		}
	}
	fleet, err := c.fleet(snapshot, c.Inventory.View(snapshot, c.Now()), clusterOf(&node))
	if err != nil {
		return cluster.Plan{}, err
	}
	plan := balance.Return(fleet, &drained)
	plan.Kind, plan.Cluster, plan.Node, plan.NodeName = cluster.PlanReturn, clusterOf(&node), node.ID, node.Name
	plan.Parallel, plan.Bandwidth = fleet.Settings.ParallelMoves, drained.Bandwidth
	c.commission(&plan, request.Caller, request.RequestID)
	return plan, nil
}

// drainsOf is what the drains of a node since its VMs last came back have moved away, as one plan.
func drainsOf(snapshot *state.Snapshot, node string) (drained cluster.Plan, was bool) {
	gone := map[string]bool{}
	for _, plan := range snapshot.Plans() { // newest first
		if plan.Node != node {
			continue
		}
		if plan.Kind == cluster.PlanReturn && plan.State == cluster.PlanDone {
			break
		}
		if plan.Kind != cluster.PlanDrain {
			continue
		}
		if !was {
			drained, was = plan, true
			drained.Moves = nil
		}
		for _, now := range Moves(snapshot, plan) {
			if now.State == MoveMoved && !gone[now.VM] {
				gone[now.VM] = true
				move := now.Move
				move.Result = MoveMoved
				drained.Moves = append(drained.Moves, move)
			}
		}
	}
	return drained, was
}

// reopen commits that a node takes VMs again, that its drain ends, and what comes back.
func (c *Control) reopen(
	ctx context.Context, snapshot *state.Snapshot, node cluster.Node, drain, back cluster.Plan, request UndrainNode,
) (cluster.Plan, retry, error) {
	at := c.Now()
	command := state.Command{
		Key: cmp.Or(request.RequestID, c.newID()), Kind: undrainKind, Caller: request.Caller, At: at,
		Expect: []state.Expectation{unmoved(snapshot, node.ID)},
	}
	if node.Maintenance {
		node.Maintenance, node.MaintenanceReason = false, ""
		command.Events = append(command.Events, cluster.Event{
			At: at, Kind: "node.maintenance-ended", Subject: "node/" + node.Name, Message: "takes VMs again", Caller: request.Caller,
		})
	}
	command.Nodes = []cluster.Node{node}
	if drain.State == cluster.PlanRunning {
		drain.State, drain.UpdatedAt = cluster.PlanCancelled, at
		drain.Message = drain.NodeName + " takes VMs again"
		c.include(&command, &drain, "no further move begins")
	}
	if len(back.Moves) == 0 {
		back.ID = ""
		_, again, err := c.commitPlan(ctx, command, cluster.Plan{})
		return back, again, err
	}
	c.include(&command, &back, back.Reason)
	return c.commitPlan(ctx, command, back)
}
