package tracing

import (
	"cmp"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/tracing"
)

// A plan is a trace of its own, and each of its moves a part of it. A move is an operation as well, with a trace that its agents can make
// without knowing the plan: the two are linked in both directions.

// running are the plans whose moves are carried out, and since when. That is so of one that was cancelled until its last move has ended.
func (f *Follower) running(x *state.Snapshot) map[string]time.Time {
	found := map[string]time.Time{}
	for id, begun := range f.plans {
		if plan := x.SharedPlan(id); plan != nil && moving.Unfinished(plan) { // what a restored backup has not is gone
			found[id] = begun
		}
	}
	for plan := range x.SharedLivePlans() {
		if _, known := found[plan.ID]; !known && moving.Unfinished(plan) {
			found[plan.ID] = plan.UpdatedAt // it was made then, or somebody has let it run
		}
	}
	return found
}

// lookAtPlans tells of the plans that have ended since the last look.
func (f *Follower) lookAtPlans(x *state.Snapshot) {
	present := f.running(x)
	for id, begun := range f.plans {
		if _, runs := present[id]; runs {
			continue
		}
		if plan := x.SharedPlan(id); plan != nil {
			f.endPlan(plan, begun)
		}
	}
	for plan := range x.SharedPlans() {
		if plan.Revision <= f.after {
			break
		}
		// One that has ended is written once more when its effect was observed, and what was discarded never began.
		ended := !plan.EndedAt.IsZero() && plan.ObservedAt.IsZero() && plan.State != model.PlanDiscarded
		if _, told := f.plans[plan.ID]; ended && !told { // it began and ended between two looks
			f.endPlan(plan, plan.CreatedAt)
		}
	}
	f.plans = present
}

func (f *Follower) endPlan(plan *model.Plan, begun time.Time) {
	whole := tracing.Span{
		Operation: plan.ID, Kind: string(plan.Kind), Begun: begun, Ended: plan.EndedAt, Called: tracing.IsMarked(plan.Request),
		About: map[string]string{
			"berth.plan": plan.ID, "berth.cluster": plan.Cluster, "berth.node": plan.NodeName, "berth.outcome": string(plan.State),
			"berth.reason": plan.Reason,
		},
	}
	if plan.State != model.PlanDone {
		whole.Failed = cmp.Or(plan.Message, string(plan.State))
	}
	f.Sink.Add(whole)
}

// moveOf is an operation as a part of its plan.
func moveOf(op *operation.Operation, whole *tracing.Span) tracing.Span {
	return tracing.Span{
		Operation: op.Plan, Name: "move " + op.VMName, Part: op.ID, Begun: whole.Begun, Ended: whole.Ended, Failed: whole.Failed,
		About: whole.About, Linked: op.ID,
	}
}
