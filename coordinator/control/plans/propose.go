package plans

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// ProposePlan plans how to balance a cluster, and keeps the plan until somebody applies or discards it. A new proposal replaces the
// cluster's last one. A plan without moves is not kept: its reason says why there is nothing to do. Refusals are of type *lead.Error.
func (p *Plans) ProposePlan(ctx context.Context, request ProposePlan) (model.Plan, error) {
	subject := "cluster/" + request.Cluster
	if request.Most < 0 || request.Most > MaxMost {
		return model.Plan{}, &lead.Error{
			Code: lead.Invalid, Subject: subject, Message: fmt.Sprintf("%d moves: want 1 to %d", request.Most, MaxMost),
			NextStep: fmt.Sprintf("leave it out for %d", DefaultMost),
		}
	}
	var plan model.Plan
	err := p.InTurn(ctx, subject, func() (again lead.Retry, err error) {
		plan, again, err = p.proposeOnce(ctx, request)
		return again, err
	})
	return plan, err
}

func (p *Plans) proposeOnce(ctx context.Context, request ProposePlan) (model.Plan, lead.Retry, error) {
	snapshot, again, err := p.Ready()
	if again != lead.Decided || err != nil {
		return model.Plan{}, again, err
	}
	if plan, repeated := snapshot.PlanByRequest(request.RequestID); repeated {
		return plan, lead.Decided, nil
	}
	if _, known := estate.ClusterNamed(snapshot, request.Cluster); !known {
		return model.Plan{}, lead.Decided, &lead.Error{
			Code: lead.NotFound, Subject: "cluster/" + request.Cluster, Message: fmt.Sprintf("there is no cluster %q", request.Cluster),
			NextStep: "see 'berth cluster list'",
		}
	}
	fleet, err := p.fleet(snapshot, request.Cluster, "")
	if err != nil {
		return model.Plan{}, lead.Decided, err
	}
	plan := p.even(fleet, cmp.Or(request.Most, DefaultMost))
	plan.Cluster, plan.Policy = request.Cluster, cmp.Or(plan.Policy, fleet.Policy.Name)
	plan.State, plan.Caller, plan.Request = model.PlanProposed, request.Caller, request.RequestID
	plan.CreatedAt = p.Now()
	plan.UpdatedAt = plan.CreatedAt
	if request.DryRun || len(plan.Moves) == 0 {
		return plan, lead.Decided, nil
	}
	command := p.planCommand(&plan, proposeKind)
	command.Key = cmp.Or(request.RequestID, command.Key)
	if old, there := proposed(snapshot, plan.Cluster, plan.Kind); there {
		if sameMoves(old.Moves, plan.Moves) {
			return old, lead.Decided, nil
		}
		replace(&command, old, &plan)
	}
	return p.commit(ctx, command, plan)
}

// sameMoves tells whether two plans move the same VMs between the same nodes.
func sameMoves(a, b []model.Move) bool {
	return slices.EqualFunc(a, b, func(a, b model.Move) bool {
		return a.VM == b.VM && a.Source == b.Source && a.Target == b.Target
	})
}

// even is a plan that evens a cluster out. Its lock is given back even if it panics.
func (p *Plans) even(fleet *balance.Fleet, most int) model.Plan {
	p.balancing.Lock()
	defer p.balancing.Unlock()
	return balance.Even(fleet, most)
}
