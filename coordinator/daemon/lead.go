package daemon

import (
	"context"
	"fmt"
	"time"

	"berth/coordinator/agents"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pause"
)

const (
	barrierPause  = 100 * time.Millisecond
	registerPause = time.Second
)

// takeTurns leads whenever this member is elected, until consensus has stopped. One turn has ended before the next begins.
func (d *daemon) takeTurns() {
	end := func() {}
	for change := range d.consensus.Leadership() {
		end()
		end = func() {}
		if change.Leading {
			end = d.begin(change.Term)
		}
	}
	end()
}

func (d *daemon) begin(term uint64) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.lead(ctx, term)
	}()
	return func() {
		d.agents.Follow() // the sessions' orders are the first thing to stop
		cancel()
		<-done
	}
}

// lead does the leader's work until the context ends with the leadership. Nothing is done on a state that may lack what
// was committed before.
func (d *daemon) lead(ctx context.Context, term uint64) {
	for {
		err := d.consensus.Barrier(ctx)
		if err == nil {
			break
		}
		d.log.Debug("the state is not complete yet", "term", term, "error", err)
		if !pause.For(ctx, barrierPause) {
			return
		}
	}
	registered := make(chan struct{})
	go func() {
		defer close(registered)
		d.control.Keep(ctx, "this member's record", d.register)
	}()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		d.keepRecords(ctx)
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		d.control.Keep(ctx, "webhooks", d.webhooks.Run)
	}()
	watched := make(chan struct{})
	d.agents.Lead(term)
	go func() {
		defer close(watched)
		d.control.Keep(ctx, "telemetry", func(ctx context.Context) { d.inventory.Watch(ctx, d.store.Snapshot) })
	}()
	leased := make(chan struct{})
	go func() {
		defer close(leased)
		leases := agents.Leases{Lasts: evidence.LeaseDuration, Verify: d.consensus.VerifyRead, Given: d.control.Leased}
		d.control.Keep(ctx, "leases", func(ctx context.Context) { d.agents.GiveLeases(ctx, leases) })
	}()
	d.control.Lead(ctx, term)
	d.agents.Follow()
	<-leased
	<-registered
	<-recorded
	<-sent
	<-watched
}

// register makes sure that the others can find the leader: its record exists and tells its present addresses, and so does
// the Raft configuration. The first member of a cluster gets its record here.
func (d *daemon) register(ctx context.Context) {
	for {
		err := d.registerOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.log.Warn("this coordinator's addresses could not be recorded", "error", err)
		if !pause.For(ctx, registerPause) {
			return
		}
	}
}

func (d *daemon) registerOnce(ctx context.Context) error {
	at := time.Now().UTC()
	wanted := model.Member{ID: d.who.ID, Name: d.who.Name, JoinedAt: at}
	recorded, known := d.store.Snapshot().Member(d.who.ID)
	if known {
		wanted.JoinedAt = recorded.JoinedAt
	}
	wanted.Revision = recorded.Revision
	wanted.APIAddress, wanted.AgentAddress, wanted.RaftAddress = d.config.addresses()
	if wanted != recorded {
		result, err := d.consensus.Propose(ctx, state.Command{
			Key: newID(), Kind: "record coordinator", Caller: "peer/" + d.who.Name, At: at,
			Expect:  []state.Expectation{{Table: state.Members, ID: wanted.ID, Revision: recorded.Revision}},
			Members: []model.Member{wanted},
			Events: []model.Event{{
				At: at, Kind: "coordinator.recorded", Subject: "coordinator/" + wanted.Name, Caller: "peer/" + d.who.Name,
				Message: "is at " + wanted.RaftAddress,
			}},
		})
		if err != nil {
			return err
		}
		if result.Refusal != nil {
			return result.Refusal
		}
	}
	if err := d.consensus.AddNonvoter(ctx, wanted.ID, wanted.RaftAddress); err != nil {
		return fmt.Errorf("record the address in the Raft configuration: %w", err)
	}
	return nil
}
