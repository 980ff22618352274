// Package plans makes plans of moves and carries them out. People propose, apply and cancel plans, and drain nodes. A pass over
// each cluster every minute repairs what breaks the rules of groups, and balances load.
//
// Package moving decides what a pass comes to and how a plan goes on. This package gives it the records of the moment, commits what
// it says, and moves VMs by its Mover. All that has to last is in the records: a new leader goes on from there.
//
// It also counts how a customer's VMs are spread.
package plans

import (
	"cmp"
	"context"
	"sync"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// Mover moves single VMs.
type Mover interface {
	// BeginMove asks placement for a move of a plan, and begins it if it can be.
	BeginMove(ctx context.Context, attempt *moving.Attempt) moving.Answer
	// RecordRefusal keeps the decision that no node takes a VM, and returns it as a *lead.Error.
	RecordRefusal(ctx context.Context, decision placement.Decision) error
	// CancelOperation asks for an operation to be given up. Refusals are of type *lead.Error.
	CancelOperation(ctx context.Context, id, caller string) (operation.Operation, error)
}

// Guests are asked what no listing tells of them.
type Guests interface {
	// FrozenAmong is the names of those VMs whose guests' file systems somebody has frozen.
	FrozenAmong(ctx context.Context, snapshot *state.Snapshot, vms []string) []string
}

// Config says when the leader moves VMs of its own accord.
type Config struct {
	// CallsWait tells whether people's calls wait for their turn. Passes, and the plans that they have made, wait for them. Nil: no
	// call ever waits.
	CallsWait func() bool

	// Every is the time between two passes, and before the first; 0 means balance.Interval.
	Every time.Duration
}

// Plans works on plans of moves. It is safe for concurrent use.
type Plans struct {
	*lead.Leader

	config Config
	mover  Mover
	guests Guests

	mu        sync.Mutex
	executors map[string]*executor // by plan ID
	passes    map[string]LastPass  // by cluster name

	// balancing is held while the engines for moves read and change the histories.
	balancing sync.Mutex
	histories map[string]*balance.History // by cluster name
}

// executor carries one plan out, until it has ended or the leadership does.
type executor struct {
	plans  *Plans
	id     string
	driver *moving.Driver
	done   chan struct{}
}

// New makes a Plans that carries nothing out yet.
func New(lead *lead.Leader, mover Mover, guests Guests, config Config) *Plans {
	config.Every = cmp.Or(config.Every, balance.Interval)
	p := &Plans{Leader: lead, config: config, mover: mover, guests: guests, executors: map[string]*executor{}}
	p.Reset()
	return p
}

// Reset forgets what earlier passes have found. A leadership begins with it.
func (p *Plans) Reset() {
	p.balancing.Lock()
	p.histories = map[string]*balance.History{}
	p.balancing.Unlock()
	p.mu.Lock()
	p.passes = map[string]LastPass{}
	p.mu.Unlock()
}

// Wait returns when no plan is carried out any more. The leadership has ended before.
func (p *Plans) Wait() {
	p.mu.Lock()
	executors := p.executors
	p.executors = map[string]*executor{}
	p.mu.Unlock()
	for _, e := range executors {
		<-e.done
	}
}
