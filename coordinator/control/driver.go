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
	driver := operation.NewDriver(uint16(c.Random()))
	for ctx.Err() == nil {
		picture, known := r.load()
		if !known {
			return
		}
		todo := driver.Look(picture, c.Now())
		op, vm := picture.Operation, picture.VM
		switch {
		case todo.Over:
			return
		case todo.Place:
			r.replace(ctx, op, vm)
		case todo.Commit != nil:
			r.commit(ctx, op, vm, *todo.Commit, nil)
		default:
			r.send(term, todo)
			if next, moved := r.wait(ctx, driver, todo.Pause); moved && ctx.Err() == nil {
				r.commit(ctx, op, vm, next, nil)
			}
		}
	}
}

// load reads the records of one moment.
func (r *runner) load() (operation.Picture, bool) {
	snapshot := r.control.Store.Snapshot()
	op, known := snapshot.Operation(r.id)
	if !known {
		return operation.Picture{}, false
	}
	vm, _ := snapshot.VM(op.VM)
	picture := operation.Picture{Operation: op, VM: vm}
	for _, id := range []string{op.Source, op.Target} {
		if r.control.isOff(snapshot, id) {
			picture.Fenced = append(picture.Fenced, id)
		}
	}
	if op.Phase == operation.Queued {
		picture.Turn = mayBegin(snapshot, &op)
	}
	return picture, true
}

func (r *runner) send(term uint64, todo operation.Todo) {
	c := r.control
	for _, order := range todo.Orders {
		if !c.Agents.Order(term, order) {
			c.Logger.Debug("order waits for the node's agent", "operation", r.id, "node", order.Node, "action", order.Action)
		}
	}
	for _, order := range todo.Cancels {
		c.Agents.Cancel(order.Node, order.Operation, order.Step)
	}
}

// wait feeds answers to the driver until one moves the operation on, or it is time to look again.
func (r *runner) wait(ctx context.Context, driver *operation.Driver, pause time.Duration) (operation.Next, bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return operation.Next{}, false
		case <-r.kick:
			return operation.Next{}, false
		case <-timer.C:
			return operation.Next{}, false
		case answer := <-r.answers:
			if next, moved := driver.Answer(answer, r.control.Now()); moved {
				return next, true
			}
		}
	}
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
	search.ask(func(r *placement.Request) { r.Pinned, r.Excluded, r.Restart = op.Pinned, op.Excluded, op.Restart })
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
	target.Behind = behind(snapshot, target.Node, 0)
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
		case <-time.After(operation.LookEvery):
		}
	case err == nil && result.Refusal == nil && leavesStart(&op, &next.Operation):
		c.callUp(op.Target)
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		c.Logger.Error("an operation's step was refused", "operation", op.ID, "refusal", result.Refusal.Message)
		select {
		case <-ctx.Done():
		case <-time.After(operation.ResendEvery):
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
