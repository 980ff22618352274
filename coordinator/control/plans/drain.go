package plans

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// DrainNode takes a node out of placement and plans to move its VMs away, both in one command, so that no VM comes to it any more.
// The node stays in maintenance when the drain is over. No VM is ever stopped: what cannot move runs on and is listed. Refusals are
// of type *lead.Error.
func (p *Plans) DrainNode(ctx context.Context, request DrainNode) (Drained, error) {
	if err := checkLimits("node/"+request.Node, request.Parallel, request.Bandwidth); err != nil {
		return Drained{}, err
	}
	var drained Drained
	err := p.InTurn(ctx, "node/"+request.Node, func() (again lead.Retry, err error) {
		drained, again, err = p.drainOnce(ctx, request)
		return again, err
	})
	return drained, err
}

func (p *Plans) drainOnce(ctx context.Context, request DrainNode) (Drained, lead.Retry, error) {
	snapshot, again, err := p.Ready()
	if again != lead.Decided || err != nil {
		return Drained{}, again, err
	}
	if plan, repeated := snapshot.PlanByRequest(request.RequestID); repeated {
		return Drained{Plan: plan}, lead.Decided, nil
	}
	node, known := snapshot.Node(request.Node)
	if !known {
		return Drained{}, lead.Decided, noNode(request.Node)
	}
	if err := p.drainable(snapshot, &node); err != nil {
		return Drained{}, lead.Decided, err
	}
	fleet, err := p.fleet(snapshot, node.ClusterName(), node.ID)
	if err != nil {
		return Drained{}, lead.Decided, err
	}
	parallel := cmp.Or(request.Parallel, fleet.Settings.ParallelMoves)
	preflight := balance.Drain(fleet, node.ID, parallel, request.Bandwidth)
	if preflight.Refused != "" {
		return Drained{}, lead.Decided, &lead.Error{
			Code: lead.Conflict, Subject: "node/" + node.Name,
			Message:  fmt.Sprintf("node %s cannot be drained: %s", node.Name, preflight.Refused),
			NextStep: fmt.Sprintf("'berth node maintenance %s on' keeps further VMs away and leaves those that run where they are", node.Name),
		}
	}
	plan := preflight.Plan
	plan.Kind, plan.Cluster, plan.Node, plan.NodeName = model.PlanDrain, node.ClusterName(), node.ID, node.Name
	p.makeRun(&plan, request.Caller, request.RequestID)
	plan.Parallel, plan.Bandwidth = parallel, request.Bandwidth
	preflight.WarnOfFrozen(p.frozen(ctx, snapshot, plan.Moves))
	if request.DryRun {
		return Drained{Plan: plan, Preflight: preflight}, lead.Decided, nil
	}
	command := p.planCommand(&plan, drainKind)
	command.Key = cmp.Or(request.RequestID, command.Key)
	node.Maintenance, node.MaintenanceReason = true, cmp.Or(request.Reason, node.MaintenanceReason, "drained")
	changeNode(&command, node)
	if back, comes := returnTo(snapshot, node.ID); comes && back.State == model.PlanRunning {
		back.State, back.UpdatedAt, back.Message = model.PlanCancelled, plan.CreatedAt, node.Name+" is drained again"
		p.include(&command, &back, "no further move begins: "+back.Message)
	}
	plan, again, err = p.commit(ctx, command, plan)
	return Drained{Plan: plan, Preflight: preflight}, again, err
}

// frozen names the VMs that are to move and cannot at this moment, because somebody has frozen their guests' file systems.
func (p *Plans) frozen(ctx context.Context, snapshot *state.Snapshot, moves []model.Move) []string {
	var going []string
	for i := range moves {
		if !moves[i].Stays {
			going = append(going, moves[i].VM)
		}
	}
	return p.guests.FrozenAmong(ctx, snapshot, going)
}

// drainable refuses a drain that could only fail.
func (p *Plans) drainable(snapshot *state.Snapshot, node *model.Node) error {
	subject := "node/" + node.Name
	if plan, drains := drainOf(snapshot, node.ID); drains {
		return &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("node %s is being drained already, by plan %s", node.Name, plan.ID),
			NextStep: fmt.Sprintf("follow it with 'berth plan watch %s', or end it with 'berth plan cancel %s'", plan.ID, plan.ID),
		}
	}
	if facts := p.Inventory.Facts(node.ID, p.Now()); facts.Liveness != model.Up {
		return &lead.Error{
			Code: lead.Unavailable, Subject: subject,
			Message:  fmt.Sprintf("node %s is %s (%s): its VMs cannot be moved", node.Name, facts.Liveness, facts.LivenessReason),
			NextStep: fmt.Sprintf("look at its agent and libvirt; 'berth node maintenance %s on' keeps further VMs away", node.Name),
		}
	}
	return nil
}
