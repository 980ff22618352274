// Package tracing makes spans of operations, out of the same records that everybody reads: how long the decision, its way into the log and
// each phase took. The leader does it, and only where traces are on.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/pause"
	"berth/shared/tracing"
)

// Sink takes spans and does not wait. An Exporter does.
type Sink interface{ Add(spans ...tracing.Span) }

// Follower makes spans of what a state becomes. One goroutine runs it.
type Follower struct {
	State func() *state.Snapshot
	Now   func() time.Time
	Sink  Sink

	after uint64 // entries through this one were looked at
	live  map[string]*course
	plans map[string]time.Time // since when those run that do
}

// course is how far an operation has come, as far as this leader has seen.
type course struct {
	begun  time.Time // of the whole
	phase  operation.Phase
	since  time.Time
	number int // of the phase
}

// Pace is the shortest time between two looks. A phase that was over within one is a part of the phase before.
const Pace = 10 * time.Millisecond

// Run follows until the context ends. What ended before it began has no spans.
func (f *Follower) Run(ctx context.Context) {
	x := f.State()
	f.after, f.live = x.Index(), map[string]*course{}
	for op := range x.SharedLive() {
		f.live[op.ID] = &course{begun: op.CreatedAt, phase: op.Phase, since: op.UpdatedAt}
	}
	f.plans = f.running(x)
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.Changed():
		}
		if !pause.For(ctx, Pace) {
			return
		}
		x = f.State()
		f.look(x)
	}
}

// look takes what has become of operations since the last look.
func (f *Follower) look(x *state.Snapshot) {
	now, live := f.Now(), map[string]*course{}
	for op := range x.EndedSince(f.after) {
		f.advance(x, op, now)
		f.end(op)
	}
	for op := range x.SharedLive() {
		f.advance(x, op, now)
		live[op.ID] = f.live[op.ID]
	}
	f.lookAtPlans(x)
	f.after, f.live = x.Index(), live // what a restored backup has not is gone
}

// advance tells of the phase that an operation has left.
func (f *Follower) advance(x *state.Snapshot, op *operation.Operation, now time.Time) {
	at := f.live[op.ID]
	if at == nil {
		at = f.begin(x, op, now)
		f.live[op.ID] = at
	}
	if at.phase == op.Phase {
		return
	}
	left := op.UpdatedAt
	if !op.EndedAt.IsZero() {
		left = op.EndedAt
	}
	f.Sink.Add(tracing.Span{
		Operation: op.ID, Name: string(at.phase), Part: strconv.Itoa(at.number), Begun: at.since, Ended: left,
		About: map[string]string{"berth.attempt": fmt.Sprint(op.Attempt), "berth.target": op.TargetName},
	})
	at.phase, at.since, at.number = op.Phase, left, at.number+1
}

// begin tells how an operation came into the log.
func (f *Follower) begin(x *state.Snapshot, op *operation.Operation, now time.Time) *course {
	at := &course{begun: op.CreatedAt, phase: op.Phase, since: op.CreatedAt}
	if op.Phase == operation.Ended { // begun and ended between two looks
		at.phase = operation.Dispatched
	}
	if decision, known := x.Decision(op.Decision); known && !decision.At.IsZero() {
		if decision.At.Before(at.begun) {
			at.begun = decision.At
		}
		f.Sink.Add(tracing.Span{
			Operation: op.ID, Name: "decision", Begun: decision.At, Ended: op.CreatedAt,
			About: map[string]string{
				"berth.decision": decision.ID, "berth.outcome": string(decision.Outcome), "berth.winner": decision.WinnerName,
				"berth.policy": decision.Policy, "berth.reason": decision.Reason,
			},
		})
	}
	f.Sink.Add(tracing.Span{Operation: op.ID, Name: "commit", Begun: op.CreatedAt, Ended: now})
	return at
}

// end tells of the whole.
func (f *Follower) end(op *operation.Operation) {
	at := f.live[op.ID]
	delete(f.live, op.ID)
	whole := tracing.Span{
		Operation: op.ID, Kind: string(op.Kind), Begun: at.begun, Ended: op.EndedAt, Called: tracing.IsMarked(op.Request),
		About: map[string]string{
			"berth.operation": op.ID, "berth.vm": op.VMName, "berth.source": op.SourceName, "berth.target": op.TargetName,
			"berth.decision": op.Decision, "berth.plan": op.Plan, "berth.outcome": op.Outcome(),
		},
		Linked: op.Plan,
	}
	if op.Result != operation.Done {
		whole.Failed = cmp.Or(op.Message, op.Outcome())
	}
	f.Sink.Add(whole)
	if op.Plan != "" {
		f.Sink.Add(moveOf(op, &whole))
	}
}
