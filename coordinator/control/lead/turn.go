package lead

import (
	"context"
	"time"

	"berth/coordinator/state"
)

// Retry says why a decision has to be made again.
type Retry int

// What became of a decision.
const (
	Decided    Retry = iota // nothing has to be made again
	Stale                   // the state has changed since the decision was made
	Incomplete              // refused, but this leader has not heard yet what nodes are about to tell
)

// MostReplans bounds how often a decision is made again because the state has changed.
const MostReplans = 5

// ViewPause is between two looks at a view that is not complete yet after a change of the leader.
const ViewPause = 100 * time.Millisecond

// InTurn decides and commits in one turn, so that each decision sees the ones before it. See again.
func (l *Leader) InTurn(ctx context.Context, subject string, once func() (Retry, error)) error {
	return Again(ctx, subject, func() (Retry, error) {
		l.Placing.Lock()
		defer l.Placing.Unlock()
		return once()
	})
}

// Again decides again: a few times when the state has changed, and for as long as the view is not complete.
func Again(ctx context.Context, subject string, once func() (Retry, error)) error {
	for replans := 0; replans < MostReplans; {
		again, err := once()
		switch again {
		case Decided:
			return err
		case Stale:
			replans++
		case Incomplete:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(ViewPause):
			}
		}
	}
	return TooBusy(subject)
}

// ViewComplete tells whether every node has reported, or has had the time to. It is asked before the view is made: a node that
// reports between the two must not make a refusal final that was decided without it.
func (l *Leader) ViewComplete(snapshot *state.Snapshot) bool {
	return l.Inventory.Settled(snapshot, l.Now())
}

// Ready is the state that a decision can be made on.
func (l *Leader) Ready() (*state.Snapshot, Retry, error) {
	if !l.Leading() {
		return nil, Decided, ErrNotLeading
	}
	snapshot := l.Store.Snapshot()
	if err := Quarantined(snapshot); err != nil {
		return nil, Decided, err
	}
	if !l.ViewComplete(snapshot) {
		return nil, Incomplete, nil
	}
	return snapshot, Decided, nil
}

// MetaRestored is the key of the replicated time at which a restored state was last compared with the nodes.
const MetaRestored = "restored_at"

// RestoredAt is that time; zero: the state was never restored.
func RestoredAt(snapshot *state.Snapshot) time.Time {
	at, err := time.Parse(time.RFC3339Nano, snapshot.Meta(MetaRestored))
	if err != nil {
		return time.Time{}
	}
	return at
}
