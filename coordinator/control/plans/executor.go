package plans

import (
	"context"
	"sync"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/state"
)

// Resume carries on with every plan that has not ended and that nobody works on. It returns how many have not ended.
func (p *Plans) Resume() (unfinished int) {
	plans := p.Store.Snapshot().Plans()
	for i := range plans {
		if moving.Unfinished(&plans[i]) {
			unfinished++
			p.execute(plans[i].ID)
		}
	}
	return unfinished
}

// execute begins a plan's executor, if this member leads and the plan has none.
func (p *Plans) execute(id string) {
	p.WhileLeading(func(ctx context.Context, _ uint64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.executors[id] != nil {
			return
		}
		e := &executor{plans: p, id: id, driver: moving.NewDriver(), done: make(chan struct{})}
		p.executors[id] = e
		p.Beside(new(sync.WaitGroup), "plan "+id, func() { e.run(ctx) })
	})
}

func (e *executor) run(ctx context.Context) {
	p := e.plans
	defer func() {
		p.mu.Lock()
		if p.executors[e.id] == e {
			delete(p.executors, e.id)
		}
		p.mu.Unlock()
		close(e.done)
	}()
	p.Keep(ctx, "plan "+e.id, e.goOn)
}

// goOn carries the plan out to its end, or to that of the leadership.
func (e *executor) goOn(ctx context.Context) {
	p := e.plans
	for ctx.Err() == nil {
		snapshot := p.Store.Snapshot()
		plan, known := snapshot.Plan(e.id)
		if !known || !moving.Unfinished(&plan) {
			return
		}
		timer := time.NewTimer(e.advance(ctx, snapshot, plan))
		select {
		case <-ctx.Done():
		case <-snapshot.Changed():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// advance does what the driver says now. It returns how long to wait when nothing changes meanwhile.
func (e *executor) advance(ctx context.Context, snapshot *state.Snapshot, plan model.Plan) time.Duration {
	p := e.plans
	step := e.driver.Look(moving.Scene{
		Records: snapshot, Plan: plan, At: p.Now(),
		Held: lead.Quarantined(snapshot) != nil || !p.nodesReported(snapshot) || plan.Caller == moving.Berth && p.callsWait(),
		Fleet: func() *balance.Fleet {
			fleet, err := p.fleet(snapshot, plan.Cluster, "")
			if err != nil {
				p.Logger.Warn("a plan is carried out without its groups", "plan", e.id, "error", err)
				return nil
			}
			return fleet
		},
		Size: p.Moment(snapshot).Size,
	})
	for step.Begin != nil {
		answer := p.mover.BeginMove(ctx, step.Begin)
		if ctx.Err() != nil {
			return 0
		}
		step = e.driver.Tell(answer)
	}
	for i := range step.GivenUp {
		_ = p.mover.RecordRefusal(ctx, step.GivenUp[i].Decision)
	}
	if step.Write != nil {
		p.write(ctx, step.Write)
	}
	return step.Wait
}

// write commits what the driver of a plan has decided. If that fails, the executor's next look decides it again.
func (p *Plans) write(ctx context.Context, change *moving.Change) {
	plan, kind := &change.Plan, endKind
	if plan.EndedAt.IsZero() {
		kind = cancelKind
	}
	command := p.planCommand(plan, kind)
	command.Events[0].Message = planText(plan, change.Said)
	result, err := p.Propose(ctx, command)
	switch {
	case err != nil && ctx.Err() == nil:
		p.Logger.Warn("a plan's step could not be committed", "plan", plan.ID, "error", err)
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		p.Logger.Error("a plan's step was refused", "plan", plan.ID, "refusal", result.Refusal.Message)
	}
}

// commit proposes the command that writes a plan, and carries the plan out if it runs.
func (p *Plans) commit(ctx context.Context, command state.Command, plan model.Plan) (model.Plan, lead.Retry, error) {
	result, err := p.Propose(ctx, command)
	switch {
	case err != nil:
		return model.Plan{}, lead.Decided, err
	case result.Refusal == nil:
		plan.Revision = result.Index
		if moving.Unfinished(&plan) {
			p.execute(plan.ID)
		}
		return plan, lead.Decided, nil
	case result.Refusal.Code == state.Stale:
		return model.Plan{}, lead.Stale, nil
	default:
		return model.Plan{}, lead.Decided, lead.RefusalOf(result.Refusal, "")
	}
}
