package control

import (
	"context"
	"errors"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/consensus"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// How long a runner waits before it sends the same orders again. Agents know operation and step, so a repetition costs a
// message; it covers whatever got lost without a session closing.
const (
	resendEvery = 15 * time.Second
	lookEvery   = 2 * time.Second // judging and discarding: what the nodes show may change
)

// runner drives one operation from its record to its end.
type runner struct {
	control *Control
	id      string
	answers chan operation.Answer
	kick    chan struct{}
	done    chan struct{}
}

// drive sets a runner going for a live operation, if this member leads.
func (c *Control) drive(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == 0 || c.runners[id] != nil {
		return
	}
	r := &runner{
		control: c, id: id,
		// An agent answers each order once a session; two nodes, a few phases. What does not fit is asked for again.
		answers: make(chan operation.Answer, 16),
		kick:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	c.runners[id] = r
	go r.run(c.ctx, c.term)
}

func (r *runner) deliver(answer operation.Answer) {
	select {
	case r.answers <- answer:
	default:
		r.control.Logger.Warn("an answer was dropped and will be asked for again", "operation", r.id, "node", answer.Node)
	}
}

func (r *runner) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

func (r *runner) run(ctx context.Context, term uint64) {
	c := r.control
	defer func() {
		c.mu.Lock()
		if c.runners[r.id] == r {
			delete(c.runners, r.id)
		}
		c.mu.Unlock()
		close(r.done)
	}()
	for {
		op, vm, live := r.load()
		if !live {
			return
		}
		if op.Phase == operation.Placing {
			r.replace(ctx, op, vm)
		} else if next, moved := r.converse(ctx, term, op, vm); moved && ctx.Err() == nil {
			r.commit(ctx, op, vm, next, nil)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (r *runner) load() (operation.Operation, cluster.VM, bool) {
	snapshot := r.control.Store.Snapshot()
	op, known := snapshot.Operation(r.id)
	if !known || !op.Live() || op.Result == operation.Parked {
		return op, cluster.VM{}, false
	}
	vm, _ := snapshot.VM(op.VM)
	return op, vm, true
}

// converse sends the orders of one phase and waits until an answer moves the operation on.
func (r *runner) converse(ctx context.Context, term uint64, op operation.Operation, vm cluster.VM) (operation.Next, bool) {
	c := r.control
	pause := resendEvery
	switch op.Phase {
	case operation.Judging, operation.Discarding, operation.Clearing:
		pause = lookEvery
	}
	var round uint16
	for {
		if next, overdue := operation.Overdue(op, vm, c.Now()); overdue {
			return next, true
		}
		round++
		seen := map[string]operation.Observation{}
		for _, order := range operation.Orders(op, vm, round) {
			if !c.Agents.Order(term, order) {
				c.Logger.Debug("order waits for the node's agent", "operation", op.ID, "node", order.Node, "action", order.Action)
			}
			if op.Cancel && (op.Phase == operation.Copying || op.Phase == operation.Preparing) {
				c.Agents.Cancel(order.Node, op.ID, order.Step)
			}
		}
		timer := time.NewTimer(pause)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return operation.Next{}, false
			case <-r.kick:
				fresh, _, live := r.load()
				if !live || fresh.Revision != op.Revision {
					timer.Stop()
					return operation.Next{}, false // cancelled, for instance: start from the new record
				}
				waiting = false
			case <-timer.C:
				waiting = false
			case answer := <-r.answers:
				if next, moved := r.take(op, vm, answer, round, seen); moved {
					timer.Stop()
					return next, true
				}
			}
		}
		timer.Stop()
	}
}

// take feeds one answer to the state machine.
func (r *runner) take(
	op operation.Operation, vm cluster.VM, answer operation.Answer, round uint16, seen map[string]operation.Observation,
) (operation.Next, bool) {
	at := r.control.Now()
	if op.Phase != operation.Judging {
		return operation.Step(op, vm, answer, at)
	}
	if answer.Step != op.Step|uint32(round)<<16 || answer.Outcome != operation.OutcomeDone {
		return operation.Next{}, false
	}
	seen[answer.Node] = answer.Seen
	return operation.Settle(op, vm, seen, at)
}

// replace finds the next node for a start whose last one failed, and commits it. While the nodes have not all reported to
// this leader, it does not take their silence for an answer.
func (r *runner) replace(ctx context.Context, op operation.Operation, vm cluster.VM) {
	if r.replaceOnce(ctx, op, vm) == unsettled {
		select {
		case <-ctx.Done():
		case <-time.After(unsettledPause):
		}
	}
}

// replaceOnce commits under the lock, so that the next decision sees it.
func (r *runner) replaceOnce(ctx context.Context, op operation.Operation, vm cluster.VM) retry {
	c := r.control
	c.placing.Lock()
	defer c.placing.Unlock()
	snapshot, at := c.Store.Snapshot(), c.Now()
	abandon := func(why string, decisions ...placement.Decision) retry {
		r.commit(ctx, op, vm, operation.Abandon(op, vm, op.Message+"; "+why, at), nil, decisions...)
		return decided
	}
	if op.Cancel {
		return abandon("not placed again because it was cancelled")
	}
	settled := c.settled(snapshot)
	search, err := c.search(snapshot, snapshot, vm, placement.ForStart)
	if err != nil {
		return abandon("and " + err.Error())
	}
	search.ask(func(r *placement.Request) { r.Pinned, r.Excluded = op.Pinned, op.Excluded })
	search.only(snapshot, op.Pinned)
	decision := c.decide(search, op.Caller)
	decision.Operation = op.ID
	if decision.Outcome == placement.Refused && !settled {
		return unsettled
	}
	if decision.Outcome == placement.Refused {
		return abandon("and "+decision.Reason, decision)
	}
	target, err := search.target(snapshot, decision)
	if err != nil {
		return abandon("and " + err.Error())
	}
	next := operation.Place(op, vm, target, at)
	r.commit(ctx, op, vm, next, append(search.unchanged(snapshot, decision), unmoved(snapshot, decision.Winner)), decision)
	return decided
}

// commit makes the next records durable. A stale refusal means that a record moved on (a cancel, or something that a
// decision has read): the caller starts from the new one.
func (r *runner) commit(
	ctx context.Context, op operation.Operation, vm cluster.VM, next operation.Next, read []state.Expectation,
	decisions ...placement.Decision,
) {
	c := r.control
	command := state.Command{
		Key: c.newID(), Kind: string(op.Kind) + " vm: " + string(next.Operation.Phase), Caller: op.Caller, At: next.Operation.UpdatedAt,
		Expect: append([]state.Expectation{
			{Table: state.Operations, ID: op.ID, Revision: op.Revision},
			{Table: state.VMs, ID: vm.ID, Revision: vm.Revision},
		}, read...),
		Operations: []operation.Operation{next.Operation},
		Decisions:  decisions,
		Events:     c.eventsOf(op, next),
	}
	if next.DeleteVM {
		command.Delete = []state.Record{{Table: state.VMs, ID: vm.ID}}
	} else {
		command.VMs = []cluster.VM{next.VM}
	}
	c.settleDisks(&command, next)
	result, err := c.propose(ctx, command)
	switch {
	case err != nil && ctx.Err() == nil:
		c.Logger.Warn("an operation's step could not be committed", "operation", op.ID, "error", err)
		select { // the leadership is going, or the disk is; either way, not in a hot loop
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		c.Logger.Error("an operation's step was refused", "operation", op.ID, "refusal", result.Refusal.Message)
		select {
		case <-ctx.Done():
		case <-time.After(resendEvery):
		}
	}
}

// propose commits a command. When the outcome is not known it asks again with the same key, so that the answer is about
// this command and nothing is done twice.
func (c *Control) propose(ctx context.Context, command state.Command) (state.Result, error) {
	for {
		result, err := c.Proposer.Propose(ctx, command)
		if !errors.Is(err, consensus.ErrUnknown) {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
