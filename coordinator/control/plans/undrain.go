package plans

import (
	"context"
	"fmt"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/state"
	"berth/coordinator/unanswered"
)

// UndrainNode lets a node take VMs again, and ends its drain if one runs: no further move begins. It returns the plan that brings VMs
// back, or a zero one if that was not asked for. Refusals are of type *lead.Error.
func (p *Plans) UndrainNode(ctx context.Context, request UndrainNode) (model.Plan, error) {
	var plan model.Plan
	err := p.InTurn(ctx, "node/"+request.Node, func() (again lead.Retry, err error) {
		plan, again, err = p.undrainOnce(ctx, request)
		return again, err
	})
	return plan, err
}

func (p *Plans) undrainOnce(ctx context.Context, request UndrainNode) (model.Plan, lead.Retry, error) {
	snapshot, again, err := p.Ready()
	if again != lead.Decided || err != nil {
		return model.Plan{}, again, err
	}
	if plan, repeated := snapshot.PlanByRequest(request.RequestID); repeated || snapshot.Answered(request.RequestID, undrainKind) {
		return plan, lead.Decided, nil
	}
	node, known := snapshot.Node(request.Node)
	if !known {
		return model.Plan{}, lead.Decided, noNode(request.Node)
	}
	var back model.Plan
	if request.Return {
		if back, err = p.back(snapshot, node, request); err != nil || request.DryRun {
			return back, lead.Decided, err
		}
	}
	drain, drains := drainOf(snapshot, node.ID)
	if request.DryRun || !node.Maintenance && !drains && len(back.Moves) == 0 {
		return back, lead.Decided, nil
	}
	return p.reopen(ctx, node, drain, back, request)
}

// back is the plan that brings VMs back to a node.
func (p *Plans) back(snapshot *state.Snapshot, node model.Node, request UndrainNode) (model.Plan, error) {
	if facts := p.Inventory.Facts(node.ID, p.Now()); facts.Liveness != model.Up {
		return model.Plan{}, &lead.Error{
			Code: lead.Unavailable, Subject: "node/" + node.Name,
			Message:  fmt.Sprintf("node %s is %s (%s): no VM can come back", node.Name, facts.Liveness, facts.LivenessReason),
			NextStep: "look at its agent and libvirt, then ask again",
		}
	}
	if plan, comes := returnTo(snapshot, node.ID); comes {
		return model.Plan{}, &lead.Error{
			Code: lead.Conflict, Subject: "node/" + node.Name,
			Message:  fmt.Sprintf("VMs are on their way back to node %s already, by plan %s", node.Name, plan.ID),
			NextStep: fmt.Sprintf("follow it with 'berth plan watch %s'", plan.ID),
		}
	}
	drained, was := moving.Drained(snapshot, snapshot.Plans(), node.ID)
	if !was {
		return model.Plan{}, &lead.Error{
			Code: lead.Conflict, Subject: "node/" + node.Name,
			Message:  fmt.Sprintf("node %s was not drained: no VM is known to belong there", node.Name),
			NextStep: fmt.Sprintf("leave --return out, or move VMs with 'berth vm migrate VM --to %s'", node.Name),
		}
	}
	fleet, err := p.fleet(snapshot, node.ClusterName(), "")
	if err != nil {
		return model.Plan{}, err
	}
	plan := balance.Return(fleet, &drained)
	plan.Kind, plan.Cluster, plan.Node, plan.NodeName = model.PlanReturn, node.ClusterName(), node.ID, node.Name
	plan.Parallel, plan.Bandwidth = fleet.Settings.ParallelMoves, drained.Bandwidth
	p.makeRun(&plan, request.Caller, request.RequestID)
	return plan, nil
}

// reopen commits that a node takes VMs again, that its drain ends, and what comes back.
func (p *Plans) reopen(
	ctx context.Context, node model.Node, drain, back model.Plan, request UndrainNode,
) (model.Plan, lead.Retry, error) {
	command := p.Command(undrainKind, request.RequestID, request.Caller)
	at := command.At
	if node.Maintenance {
		node.Maintenance, node.MaintenanceReason, node.Unanswered = false, "", unanswered.Mark{}
		command.Events = append(command.Events, model.Event{
			At: at, Kind: "node.maintenance-ended", Subject: "node/" + node.Name, Message: "takes VMs again", Caller: request.Caller,
		})
	}
	changeNode(&command, node)
	if drain.State == model.PlanRunning {
		drain.State, drain.UpdatedAt = model.PlanCancelled, at
		drain.Message = drain.NodeName + " takes VMs again"
		p.include(&command, &drain, "no further move begins")
	}
	if len(back.Moves) == 0 {
		back.ID = ""
		_, again, err := p.commit(ctx, command, model.Plan{})
		return back, again, err
	}
	p.include(&command, &back, back.Reason)
	return p.commit(ctx, command, back)
}
