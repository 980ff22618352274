package plans

import (
	"context"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/state"
)

// RunPasses makes a pass over every cluster at each interval, until the context ends. The first one comes an interval after the
// leadership has begun, so that agents which are still on their way to a new leader are not taken for silent nodes.
func (p *Plans) RunPasses(ctx context.Context) {
	ticker := time.NewTicker(p.config.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, name := range estate.ClusterNames(p.Store.Snapshot()) {
			if ctx.Err() == nil {
				p.pass(ctx, name)
			}
		}
	}
}

// LastPass is what the last pass over a cluster came to; false before the first one of this leadership.
func (p *Plans) LastPass(clusterName string) (LastPass, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, made := p.passes[clusterName]
	return last, made
}

func (p *Plans) remember(clusterName string, last LastPass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passes[clusterName] = last
}

// pass looks at one cluster and stores what it finds: which groups are broken, what came of earlier moves, and the move to make
// now.
func (p *Plans) pass(ctx context.Context, clusterName string) {
	snapshot, at := p.Store.Snapshot(), p.Now()
	if why := p.idleBecause(snapshot); why != "" {
		p.remember(clusterName, LastPass{At: at, Idle: why})
		return
	}
	fleet, err := p.fleet(snapshot, clusterName, "")
	if err != nil {
		p.Logger.Warn("a cluster cannot be looked at", "cluster", clusterName, "error", err)
		p.remember(clusterName, LastPass{At: at, Idle: err.Error()})
		return
	}
	passed := p.look(fleet, snapshot)
	p.remember(clusterName, LastPass{At: at, Idle: passed.Idle, Unrepaired: passed.Unrepaired})
	p.mark(ctx, passed.Marks, passed.Both, at)
	for i := range passed.Observed {
		command := p.foundCommand(&passed.Observed[i], "observe plan")
		command.Events[0].Kind = "plan.observed"
		p.Try(ctx, command)
	}
	for i := range passed.Discarded {
		p.Try(ctx, p.foundCommand(&passed.Discarded[i], discardKind))
	}
	if passed.Plan == nil {
		return
	}
	command := p.planCommand(passed.Plan, proposeKind)
	if passed.Instead != nil {
		replace(&command, *passed.Instead, passed.Plan)
	}
	if p.Try(ctx, command) && passed.Plan.State == model.PlanRunning {
		p.execute(passed.Plan.ID)
	}
}

// idleBecause tells why the leader makes no pass now; empty: it makes one.
func (p *Plans) idleBecause(snapshot *state.Snapshot) string {
	if err := lead.Quarantined(snapshot); err != nil {
		return err.Error()
	}
	if !p.nodesReported(snapshot) {
		return "not all nodes have reported to this leader"
	}
	if p.callsWait() {
		return "what people ask for goes first, and some of it waits"
	}
	for node := range snapshot.SharedNodes() {
		if node.Fencing.Phase == model.FencingAsked {
			return "the fence device of " + node.Name + " is being asked"
		}
	}
	return ""
}

// look is a pass over a cluster. Its lock is given back even if it panics.
func (p *Plans) look(fleet *balance.Fleet, snapshot *state.Snapshot) moving.Passed {
	p.balancing.Lock()
	defer p.balancing.Unlock()
	return moving.Pass(fleet, snapshot)
}

// mark writes down which groups are broken since when, and which of them hold again.
func (p *Plans) mark(ctx context.Context, marks []moving.Mark, both []moving.Told, at time.Time) (stored bool) {
	if len(marks) == 0 {
		return true
	}
	command := state.Command{Key: p.NewID(), Kind: "mark groups", Caller: moving.Berth, At: at}
	for i := range marks {
		one := &marks[i]
		event := model.Event{
			At: at, Subject: "group/" + one.Record.Name, Caller: moving.Berth, Kind: "group.holds",
			Message: "holds again, after " + one.Lasted.Round(time.Second).String(),
		}
		if one.Broken {
			event.Kind, event.Message = "group.broken", one.Why
		}
		command.Expect = append(command.Expect, state.Expectation{
			Table: state.Resources, ID: one.Record.ID, Revision: one.Record.Revision,
		})
		command.Resources, command.Events = append(command.Resources, one.Record), append(command.Events, event)
	}
	for _, one := range both {
		command.Events = append(command.Events, model.Event{
			At: at, Kind: "vm.two-repairs", Subject: "vm/" + one.Name, Caller: moving.Berth, Message: one.Why,
		})
	}
	return p.Try(ctx, command)
}

// foundCommand writes what a pass has found out about a plan.
func (p *Plans) foundCommand(change *moving.Change, kind string) state.Command {
	command := p.planCommand(&change.Plan, kind)
	command.Caller = moving.Berth
	command.Events[0].Caller, command.Events[0].Message = moving.Berth, planText(&change.Plan, change.Said)
	return command
}
