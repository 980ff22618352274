package plans

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/state"
)

// ApplyPlan sets a proposed plan going.
func (p *Plans) ApplyPlan(ctx context.Context, request ApplyPlan) (model.Plan, error) {
	if err := checkLimits("plan/"+request.Plan, request.Parallel, 0); err != nil {
		return model.Plan{}, err
	}
	return p.steer(ctx, request.Plan, request.RequestID, applyKind, request.Caller, func(
		snapshot *state.Snapshot, plan *model.Plan,
	) (string, error) {
		if plan.State != model.PlanProposed {
			return "", notProposed(plan)
		}
		if err := lead.Quarantined(snapshot); err != nil {
			return "", err
		}
		if other, runs := running(snapshot, plan.Cluster); runs {
			return "", &lead.Error{
				Code: lead.Conflict, Subject: "plan/" + plan.ID,
				Message:  fmt.Sprintf("plan %s (%s) is carried out in cluster %q", other.ID, other.Kind, plan.Cluster),
				NextStep: fmt.Sprintf("wait for it with 'berth plan watch %s', or end it with 'berth plan cancel %s'", other.ID, other.ID),
			}
		}
		plan.State = model.PlanRunning
		plan.Parallel = cmp.Or(request.Parallel, plan.Parallel)
		return "is carried out: " + plan.Reason, nil
	})
}

// DiscardPlan ends a proposed plan without any move.
func (p *Plans) DiscardPlan(ctx context.Context, request DiscardPlan) (model.Plan, error) {
	return p.steer(ctx, request.Plan, request.RequestID, discardKind, request.Caller, func(
		_ *state.Snapshot, plan *model.Plan,
	) (string, error) {
		if plan.State != model.PlanProposed {
			return "", notProposed(plan)
		}
		moving.Discard(plan, moving.NobodyWants, p.Now())
		return plan.Message, nil
	})
}

func notProposed(plan *model.Plan) *lead.Error {
	next := "make a new one with 'berth plan new'"
	if plan.State == model.PlanRunning {
		next = fmt.Sprintf("end it with 'berth plan cancel %s'", plan.ID)
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "plan/" + plan.ID,
		Message: fmt.Sprintf("plan %s is %s: nothing is proposed any more", plan.ID, plan.State), NextStep: next,
	}
}

// CancelPlan ends a running plan: no further move begins. Abort gives up moves that copy already, too, and may be asked for later, as
// long as a move copies.
func (p *Plans) CancelPlan(ctx context.Context, request CancelPlan) (model.Plan, error) {
	plan, err := p.steer(ctx, request.Plan, request.RequestID, cancelKind, request.Caller, func(
		_ *state.Snapshot, plan *model.Plan,
	) (string, error) {
		switch {
		case plan.State == model.PlanProposed:
			return "", &lead.Error{
				Code: lead.Conflict, Subject: "plan/" + plan.ID, Message: fmt.Sprintf("plan %s was never begun", plan.ID),
				NextStep: fmt.Sprintf("discard it with 'berth plan discard %s'", plan.ID),
			}
		case !moving.Unfinished(plan):
			return "", &lead.Error{
				Code: lead.Conflict, Subject: "plan/" + plan.ID, Message: fmt.Sprintf("plan %s has ended already (%s)", plan.ID, plan.State),
				NextStep: "nothing is left to cancel",
			}
		case plan.State == model.PlanCancelled:
			return "", nil
		}
		plan.State, plan.Message = model.PlanCancelled, "cancelled by "+request.Caller
		return "no further move begins", nil
	})
	if err != nil || !request.Abort {
		return plan, err
	}
	return plan, p.abortMoves(ctx, plan.ID, request.Caller)
}

// abortMoves cancels the moves of a plan that copy already. A move that ends meanwhile needs no cancelling.
func (p *Plans) abortMoves(ctx context.Context, plan, caller string) error {
	for _, op := range p.Store.Snapshot().OperationsOfPlan(plan) {
		if !op.Live() || op.Cancel {
			continue
		}
		_, err := p.mover.CancelOperation(ctx, op.ID, caller)
		if refusal := (*lead.Error)(nil); errors.As(err, &refusal) && refusal.Code == lead.Conflict {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// steer changes a plan's record. Change returns the text of the event, which is empty when the plan stays as it is.
func (p *Plans) steer(
	ctx context.Context, id, request, kind, caller string, change func(*state.Snapshot, *model.Plan) (string, error),
) (model.Plan, error) {
	for range lead.MostReplans {
		if !p.Leading() {
			return model.Plan{}, lead.ErrNotLeading
		}
		snapshot := p.Store.Snapshot()
		plan, known := snapshot.Plan(id)
		switch {
		case !known:
			return model.Plan{}, noPlan(id)
		case snapshot.Answered(request, kind):
			return plan, nil
		}
		after := plan
		said, err := change(snapshot, &after)
		if err != nil || said == "" {
			return plan, err
		}
		after.UpdatedAt = p.Now()
		command := p.planCommand(&after, kind)
		command.Key, command.Caller = cmp.Or(request, command.Key), caller
		command.Events[0].Caller, command.Events[0].Message = caller, planText(&after, said)
		after, again, err := p.commit(ctx, command, after)
		if again == lead.Decided {
			return after, err
		}
	}
	return model.Plan{}, lead.TooBusy("plan/" + id)
}

// CancelRestored ends the plans of a restored state in the command that lifts its quarantine. They belong to the time of the backup, and
// nobody knows what has become of their reasons.
func (p *Plans) CancelRestored(snapshot *state.Snapshot, command *state.Command) {
	for _, plan := range snapshot.Plans() {
		if !plan.State.Live() && !moving.Unfinished(&plan) {
			continue
		}
		was := plan.State
		moving.Discard(&plan, "the state was restored from a backup", command.At)
		if was != model.PlanProposed {
			plan.State = model.PlanCancelled
		}
		p.include(command, &plan, plan.Message)
	}
}
