package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Config is what the leader's work stands on.
type Config struct {
	Store     *state.Store
	Proposer  Proposer
	Agents    Agents
	Inventory Inventory
	Fences    FenceDevices
	Logger    hclog.Logger
	Now       func() time.Time
	Random    func() uint64 // seeds and IDs; need not be secret

	// Crowded tells whether people's calls wait for their turn: what the leader does of its own accord waits for them. Nil:
	// they never do.
	Crowded func() bool

	// PassEvery is between two looks of the leader at how well VMs are placed, and before its first; 0 means balance.Interval.
	PassEvery time.Duration
}

// Control does the leader's work. It is safe for concurrent use.
type Control struct {
	Config

	// placing serialises decide-and-commit, so that each decision sees the ones before it.
	placing turnstile
	waiting waitingStarts

	mu      sync.Mutex
	term    uint64             // 0: not leading
	since   time.Time          // of the leadership
	ctx     context.Context    // ends with the leadership
	runners map[string]*runner // by operation ID

	executors map[string]*executor // by plan ID
	storage   map[string]bool      // subjects whose volumes somebody works on
	passes    map[string]LastPass  // by cluster name

	fences fences

	// evening guards what is remembered from pass to pass.
	evening   sync.Mutex
	histories map[string]*balance.History // by cluster name
}

// New makes a Control that does nothing until Lead is called.
func New(config Config) *Control {
	if config.PassEvery == 0 {
		config.PassEvery = balance.Interval
	}
	c := &Control{Config: config, placing: newTurnstile(), runners: map[string]*runner{}, executors: map[string]*executor{}, storage: map[string]bool{}}
	c.fences.fencer = NewFencer(time.Time{}, c.newID)
	return c
}

// Lead does the leader's work until the context ends: it takes up every live operation and every plan that is carried out,
// accepts new ones, and keeps VMs well placed. The caller has passed a barrier before. It returns when nothing of this is
// left.
func (c *Control) Lead(ctx context.Context, term uint64) {
	c.evening.Lock()
	c.histories = map[string]*balance.History{}
	c.evening.Unlock()
	c.mu.Lock()
	c.term, c.since, c.ctx, c.passes = term, c.Now(), ctx, map[string]LastPass{}
	c.mu.Unlock()
	c.fences.mu.Lock()
	c.fences.fencer, c.fences.calls = NewFencer(c.Now(), c.newID), map[string]chan struct{}{}
	c.fences.mu.Unlock()
	operations, plans := c.takeUp()
	c.Logger.Info("leading", "term", term, "state_index", c.Store.Snapshot().Index(), "live_operations", operations, "live_plans", plans)
	var loops sync.WaitGroup
	loops.Go(func() { c.keepPlaced(ctx) })
	loops.Go(func() { c.follow(ctx) })
	loops.Go(func() { c.watchSilence(ctx) })
	loops.Go(func() { c.restart(ctx) })
	loops.Go(func() { c.watchCopies(ctx) })
	c.reconcile(ctx) // to the end of the leadership
	loops.Wait()
	c.mu.Lock()
	c.term = 0
	runners, executors := c.runners, c.executors
	c.runners, c.executors = map[string]*runner{}, map[string]*executor{}
	c.mu.Unlock()
	for _, e := range executors {
		<-e.done
	}
	for _, r := range runners {
		<-r.done
	}
	c.Logger.Info("leading no more", "term", term)
}

// takeUp sets everything going that the records say is at work and nobody works on. Beside what an earlier leader left, that
// is what a caller who went away did not see begin. It returns how much there is.
func (c *Control) takeUp() (operations, plans int) {
	snapshot := c.Store.Snapshot()
	for _, op := range snapshot.LiveOperations() {
		if op.Result != operation.Parked {
			operations++
			c.drive(op.ID)
		}
	}
	all := snapshot.Plans()
	for i := range all {
		if unfinished(&all[i]) {
			plans++
			c.execute(all[i].ID)
		}
	}
	return operations, plans
}

func (c *Control) leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term != 0
}

var errNotLeading = &Error{
	Code: NoLeader, Message: "this coordinator does not lead",
	NextStep: "try again: the call is forwarded once a leader is known",
}

// Answered takes an agent's answer to an order.
func (c *Control) Answered(answer operation.Answer) {
	c.mu.Lock()
	r := c.runners[answer.Operation]
	c.mu.Unlock()
	if r != nil {
		r.deliver(answer)
	}
}

// AgentConnected makes the orders to a node go out again.
func (c *Control) AgentConnected(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.runners {
		r.wake()
	}
}

// CancelOperation asks for a live operation to be given up. A migration is aborted while it copies; a start is not
// placed again. It returns the operation as it is then; how it ends is told by the operation itself.
func (c *Control) CancelOperation(ctx context.Context, id, caller string) (operation.Operation, error) {
	for range maxReplans {
		snapshot := c.Store.Snapshot()
		op, known := snapshot.Operation(id)
		switch {
		case !known:
			return operation.Operation{}, &Error{
				Code: NotFound, Subject: "operation/" + id, Message: fmt.Sprintf("there is no operation %q", id),
				NextStep: "see 'berth operation list'",
			}
		case !op.Live():
			return op, &Error{
				Code: Conflict, Subject: "operation/" + id, Operation: id,
				Message: fmt.Sprintf("operation %s has ended already (%s)", id, op.Result), NextStep: "nothing is left to cancel",
			}
		case op.Kind == operation.Stop:
			return op, &Error{
				Code: Conflict, Subject: "operation/" + id, Operation: id,
				Message: "a stop cannot be taken back once the guest was asked", NextStep: "start the VM again when it has stopped",
			}
		}
		op.Cancel = true
		op.UpdatedAt = c.Now()
		result, err := c.Proposer.Propose(ctx, state.Command{
			Key: c.newID(), Kind: "cancel operation", Caller: caller, At: op.UpdatedAt,
			Expect:     []state.Expectation{{Table: state.Operations, ID: id, Revision: op.Revision}},
			Operations: []operation.Operation{op},
			Events:     []cluster.Event{c.event(op, caller, "operation.cancel", "cancel asked for")},
		})
		if err != nil {
			return op, err
		}
		if result.Refusal == nil {
			op.Revision = result.Index
			c.mu.Lock()
			if r := c.runners[id]; r != nil {
				r.wake()
			}
			c.mu.Unlock()
			return op, nil
		}
	}
	return operation.Operation{}, errTooBusy("operation/" + id)
}

// maxReplans bounds how often a decision is made again because the state moved on under it.
const maxReplans = 5

func errTooBusy(subject string) *Error {
	return &Error{
		Code: StaleView, Subject: subject, Message: "the state changed five times under the decision",
		NextStep: "try again; if it lasts, look at 'berth operation list' for what changes it",
	}
}

func (c *Control) newID() string { return cluster.NewID(c.Now(), c.Random()) }
