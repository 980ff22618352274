// Package lead is what all rooms of the leader's work share: whether this member leads, the turn in which one decision
// after the other is made and committed, how a command is committed, and the refusals that people read.
//
// It knows no room. What it needs of the log, the agents and the telemetry are the interfaces of this package.
package lead

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/consensus"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Config is what the leader's work stands on.
type Config struct {
	Store     *state.Store
	Proposer  Proposer
	Agents    Agents
	Inventory Inventory
	Logger    hclog.Logger
	Now       func() time.Time
	Random    func() uint64 // seeds and IDs; need not be secret
}

// Leader is the leadership of this member, while it has one. It is safe for concurrent use.
type Leader struct {
	Config

	// placing is held while a decision is made and committed, so that each decision sees the ones before it.
	Placing turnstile

	budgets budgets

	mu    sync.Mutex
	term  uint64          // 0: not leading
	since time.Time       // of the leadership
	ctx   context.Context // ends with the leadership
}

// New makes a Leader that does not lead yet.
func New(config Config) *Leader {
	return &Leader{Config: config, Placing: newTurnstile()}
}

// Begin tells that this member leads from now on, until the context ends.
func (l *Leader) Begin(ctx context.Context, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.since, l.ctx = term, l.Now(), ctx
}

// End tells that this member leads no more. What whileLeading has begun before is still at work.
func (l *Leader) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = 0
}

// Leading tells whether this coordinator leads now.
func (l *Leader) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != 0
}

// Leadership is the context that ends with it, and whether there is one.
func (l *Leader) Leadership() (context.Context, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx, l.term != 0
}

// LedFor is how long this member leads already.
func (l *Leader) LedFor(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.since)
}

// WhileLeading does something if this member leads. The leadership does not end meanwhile, so what it sets going is there
// when the end waits for it.
func (l *Leader) WhileLeading(do func(ctx context.Context, term uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != 0 {
		do(l.ctx, l.term)
	}
}

// Spend takes one commit from the budget of a node, by its ID. It is false when there is nothing left: the caller lets the matter be, and
// finds it again when it looks next. No node (empty) has no limit.
func (l *Leader) Spend(node string) bool {
	if node == "" {
		return true
	}
	left, first := l.budgets.spend(node, l.Now())
	if first {
		l.Logger.Error("a node says something else again and again: what it says is written down at a limited rate", "node_id", node,
			"next", "see 'berth node show', and take the node out if its host is not yours any more")
	}
	return left
}

// NewID makes the ID of a new record.
func (l *Leader) NewID() string { return model.NewID(l.Now(), l.Random()) }

// unknownPause is between two tries to commit a command of which it is not known what became of it.
const unknownPause = 100 * time.Millisecond

// Propose commits a command. When the outcome is not known it asks again with the same key, so that the answer is about
// this command and nothing is done twice.
func (l *Leader) Propose(ctx context.Context, command state.Command) (state.Result, error) {
	for {
		result, err := l.Proposer.Propose(ctx, command)
		if !errors.Is(err, consensus.ErrUnknown) {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(unknownPause):
		}
	}
}

// Try commits what a loop has found. If it cannot be stored now, the loop's next look finds it again.
func (l *Leader) Try(ctx context.Context, command state.Command) (stored bool) {
	result, err := l.Propose(ctx, command)
	switch {
	case err != nil && ctx.Err() == nil:
		l.Logger.Warn("what a pass has found could not be kept", "what", command.Kind, "error", err)
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		l.Logger.Error("what a pass has found was refused", "what", command.Kind, "refusal", result.Refusal.Message)
	}
	return err == nil && result.Refusal == nil
}
