package tracing

import (
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// plans writes a plan, and gives its new revision.
func (s *site) plans(revision uint64, plan model.Plan) uint64 {
	s.Helper()
	s.Apply(state.Command{
		Kind: "plan", Plans: []model.Plan{plan},
		Expect: []state.Expectation{{Table: state.Plans, ID: plan.ID, Revision: revision}},
	})
	return s.Snapshot().Index()
}

// A plan that was proposed begins when somebody lets it run. One that was cancelled ends with its last move, and is told of once.
func TestAPlanBecomesASpan(t *testing.T) {
	s := newSite(t)
	plan := model.Plan{ID: "p1", Kind: model.PlanBalance, State: model.PlanProposed, CreatedAt: after(1), UpdatedAt: after(1)}
	revision := s.plans(0, plan)
	s.tells()
	plan.State, plan.UpdatedAt = model.PlanRunning, after(5)
	revision = s.plans(revision, plan)
	s.tells()
	s.now = after(6)
	s.puts(0, operation.Operation{
		ID: "m1", Kind: operation.Migrate, Plan: "p1", Phase: operation.Ended, Result: operation.Failed, Message: "no room", CreatedAt: after(6),
		UpdatedAt: after(7), EndedAt: after(7),
	})
	s.tells("m1 commit 6s to 6s", "m1 dispatched 6s to 7s", "m1 migrate 6s to 7sno room", "p1 move web-m1 6s to 7sno room")
	plan.State, plan.Message, plan.UpdatedAt = model.PlanCancelled, "cancelled by alice", after(8)
	revision = s.plans(revision, plan)
	s.tells()
	plan.UpdatedAt, plan.EndedAt = after(9), after(9)
	revision = s.plans(revision, plan)
	s.tells("p1 balance 5s to 9scancelled by alice")
	plan.ObservedAt = after(20)
	s.plans(revision, plan)
	s.tells()
}

// A drain with nothing to move is over between two looks, and what was discarded never began.
func TestPlansThatAreOverAtOnce(t *testing.T) {
	s := newSite(t)
	s.plans(0, model.Plan{
		ID: "p1", Kind: model.PlanDrain, State: model.PlanDone, CreatedAt: after(1), UpdatedAt: after(2), EndedAt: after(2),
	})
	s.plans(0, model.Plan{
		ID: "p2", Kind: model.PlanBalance, State: model.PlanDiscarded, CreatedAt: after(3), UpdatedAt: after(4), EndedAt: after(4),
	})
	s.tells("p1 drain 1s to 2s")
	s.tells()
}
