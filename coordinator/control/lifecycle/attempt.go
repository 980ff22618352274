package lifecycle

import (
	"context"
	"errors"

	"berth/coordinator/control/lead"
	"berth/coordinator/moving"
)

// BeginMove asks placement for a move of a plan, and begins it if it can be.
func (l *Lifecycle) BeginMove(ctx context.Context, attempt *moving.Attempt) moving.Answer {
	made, err := l.move(ctx, wantedMove{
		MigrateVM: MigrateVM{VM: attempt.VM, Bandwidth: attempt.Bandwidth, Caller: attempt.Caller}, attempt: attempt,
	})
	var refusal *lead.Error
	switch {
	case err == nil && made.Operation.ID != "":
		return moving.Answer{Began: &made.Operation}
	case err == nil:
		return moving.Answer{Refusal: &moving.Refusal{Why: made.Decision.Reason}}
	case errors.Is(err, errNotNow):
		return moving.Answer{NotNow: true}
	case errors.As(err, &refusal):
		return moving.Answer{Refusal: &moving.Refusal{
			Cause: causeOf(refusal.Code), Why: refusal.Message, Operation: refusal.Operation, Decision: refusal.Decision,
		}}
	case ctx.Err() == nil:
		l.Logger.Warn("a move of a plan could not begin", "plan", attempt.Plan, "vm", attempt.VMName, "error", err)
	}
	return moving.Answer{Unknown: true}
}

// causeOf is the cause of a refusal, as the plan's driver distinguishes them.
func causeOf(code lead.Code) moving.Cause {
	switch code {
	case lead.NoNodeFits:
		return moving.NoNode
	case lead.Busy:
		return moving.Busy
	case lead.Unavailable:
		return moving.Silent
	case lead.StaleView, lead.NoLeader:
		return moving.Stale
	default:
		return moving.Impossible
	}
}
