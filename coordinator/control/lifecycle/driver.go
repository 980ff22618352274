package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"berth/coordinator/binding"
	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// drive sets a runner going for a live operation, if this member leads.
func (o *Operations) drive(id string) {
	o.WhileLeading(func(ctx context.Context, term uint64) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.runners[id] != nil {
			return
		}
		r := &runner{
			control: o, id: id,
			// An agent answers each order once a session; two nodes, a few phases. What does not fit is asked for again.
			answers: make(chan operation.Answer, 16),
			kick:    make(chan struct{}, 1),
			done:    make(chan struct{}),
		}
		o.runners[id] = r
		o.Beside(new(sync.WaitGroup), "operation "+id, func() { r.run(ctx, term) })
	})
}

func (r *runner) run(ctx context.Context, term uint64) {
	o := r.control
	defer func() {
		o.mu.Lock()
		if o.runners[r.id] == r {
			delete(o.runners, r.id)
		}
		o.mu.Unlock()
		close(r.done)
	}()
	o.Keep(ctx, "operation "+r.id, func(ctx context.Context) { r.goOn(ctx, term) })
}

// goOn drives the operation to its end, or to that of the leadership.
func (r *runner) goOn(ctx context.Context, term uint64) {
	o := r.control
	driver := operation.NewDriver(uint16(o.Random()))
	for ctx.Err() == nil {
		input, known := r.load()
		if !known {
			return
		}
		todo := driver.Look(input, o.Now())
		op, vm := input.Operation, input.VM
		switch {
		case todo.Over:
			return
		case todo.Place:
			if pause := r.replace(ctx, op, vm, todo.Pause); pause > 0 {
				r.wait(ctx, driver, pause)
			}
		case todo.Commit != nil:
			if op.Awaits() && todo.Commit.Operation.Phase == operation.Dispatched && op.Kind.Stops() {
				// Its disks may have been changed while it waited, and what it ran with last goes with the guest.
				todo.Commit.VM = o.drifts.Last(ctx, o.Store.Snapshot(), todo.Commit.VM)
			}
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
func (r *runner) load() (operation.Input, bool) {
	snapshot := r.control.Store.Snapshot()
	op, known := snapshot.Operation(r.id)
	if !known {
		return operation.Input{}, false
	}
	vm, _ := snapshot.VM(op.VM)
	input := operation.Input{Operation: op, VM: vm, Boot: r.control.Moment(snapshot).Boot(op.Target)}
	facts := r.control.Inventory.Facts(op.Source, r.control.Now())
	input.Silent = op.Source != "" && facts.Liveness == model.Unreachable && r.control.Inventory.Settled(snapshot, r.control.Now())
	for _, id := range []string{op.Source, op.Target} {
		if r.control.fencing.IsOff(snapshot, id) {
			input.Fenced = append(input.Fenced, id)
		}
	}
	switch {
	case op.Awaits():
		input.Turn, input.Unlisted = op.Hears(&facts)
		input.Held = r.control.interrupts(&op, vm)
	case op.Phase == operation.Queued:
		input.Turn, input.Elsewhere = mayBegin(snapshot, &op)
	}
	input.Came, input.Fell = r.control.fencing.Stay(snapshot, &op, &vm)
	if op.Kind == operation.Migrate && r.control.Inventory.Settled(snapshot, r.control.Now()) {
		input.Suspect = evidence.Unfit(op.TargetName, r.control.Inventory.Facts(op.Target, r.control.Now()), r.control.Now())
	}
	return input, true
}

// sharedPools are libvirt's names of the pools whose files a move between two nodes may leave where they are: those that are declared as
// shared, and that no trial has shown to be another one on one of them.
func (o *Operations) sharedPools(source, target string) []string {
	snapshot := o.Store.Snapshot()
	node, _ := snapshot.Node(source)
	shared := binding.SharedPools(snapshot, node.ClusterName())
	for _, pool := range o.Inventory.Apart() {
		if pool.Apart(source, target) {
			delete(shared, pool.Source)
		}
	}
	return slices.Sorted(maps.Keys(shared))
}

func (r *runner) send(term uint64, todo operation.Todo) {
	o := r.control
	for _, order := range todo.Orders {
		if order.Action == operation.ActMigrate {
			order.SharedPools = o.sharedPools(order.Node, order.TargetNode)
		}
		if !o.Agents.Order(term, order) {
			o.Logger.Debug("order waits for the node's agent", "operation", r.id, "node", order.Node, "action", order.Action)
		}
	}
	for _, order := range todo.Cancels {
		o.Agents.Cancel(order.Node, order.Operation, order.Step)
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
			if answer.Code == operation.InUse {
				answer.Error = r.control.fencing.Survey(r.control.Store.Snapshot()).WhoHolds(r.id, answer.Node, answer.Error)
			}
			next, moved := driver.Answer(answer, r.control.Now())
			if moved && (answer.Code != operation.Journal || r.control.Spend(answer.Node)) {
				return next, true
			}
		}
	}
}

// replace finds the next node for a start whose last one failed, or answers none, and commits it under the lock, so that the next decision
// sees it. While the nodes have not all reported to this leader, it does not take their silence for an answer. It returns for how long
// to wait before the next look: one that waits for its turn keeps it for so long where no other node is found.
func (r *runner) replace(ctx context.Context, op operation.Operation, vm model.VM, queued time.Duration) time.Duration {
	o := r.control
	o.Placing.Lock()
	defer o.Placing.Unlock()
	snapshot, at := o.Store.Snapshot(), o.Now()
	abandon := func(why string, decisions ...placement.Decision) time.Duration {
		if queued == 0 {
			r.commit(ctx, op, vm, operation.Abandon(op, vm, op.Message+"; "+why, at), nil, decisions...)
		}
		return queued
	}
	if op.Cancel {
		return abandon("not placed again because it was cancelled")
	}
	settled := o.ViewComplete(snapshot)
	search, err := o.search(snapshot, snapshot, vm, placement.ForStart)
	if err != nil {
		return abandon("and " + err.Error())
	}
	search.ask(func(r *placement.Request) { r.Pinned, r.Excluded, r.Restart = op.Pinned, op.Excluded, op.Restart })
	search.only(snapshot, op.Pinned)
	decision := o.decide(search, op.Caller)
	decision.Operation = op.ID
	if decision.Outcome == placement.Refused && !settled {
		return max(lead.ViewPause, queued)
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
	r.commit(ctx, op, vm, next, append(search.unchanged(snapshot, decision), NodeUnmoved(snapshot, decision.Winner)), decision)
	return 0
}

// commit makes the next records durable. A stale refusal means that a record moved on (a cancel, or something that a
// decision has read): the caller starts from the new one.
func (r *runner) commit(
	ctx context.Context, op operation.Operation, vm model.VM, next operation.Next, read []state.Expectation,
	decisions ...placement.Decision,
) {
	o := r.control
	var bound []model.Event
	if next.Wrote != "" {
		bound = o.drifts.Wrote(o.Store.Snapshot(), &next)
	}
	if next.Operation.Code == operation.Overlaid {
		bound = drift.Events(&vm, &next.VM, next.Operation.UpdatedAt, lead.Berth)
	}
	events := append(eventsOf(op, next), bound...)
	command := state.Command{
		Key: o.NewID(), Kind: string(op.Kind) + " vm: " + string(next.Operation.Phase), Caller: op.Caller, At: next.Operation.UpdatedAt,
		Expect: append([]state.Expectation{
			{Table: state.Operations, ID: op.ID, Revision: op.Revision},
			{Table: state.VMs, ID: vm.ID, Revision: vm.Revision},
		}, read...),
		Operations: []operation.Operation{next.Operation},
		Decisions:  decisions,
		Events:     events,
	}
	if next.DeleteVM {
		command.Delete = []state.Record{{Table: state.VMs, ID: vm.ID}}
	} else {
		command.VMs = []model.VM{next.VM}
	}
	o.writeDisks(&command, next)
	result, err := o.Propose(ctx, command)
	if err == nil && result.Refusal == nil && next.Arrived() {
		o.fencing.Came(&next.VM)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		o.Logger.Warn("an operation's step could not be committed", "operation", op.ID, "error", err)
		select { // the leadership is going, or the disk is; either way, not in a hot loop
		case <-ctx.Done():
		case <-time.After(operation.LookEvery):
		}
	case err == nil && result.Refusal == nil && leavesStart(&op, &next.Operation):
		o.wakeQueued(op.Target)
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		o.Logger.Error("an operation's step was refused", "operation", op.ID, "refusal", result.Refusal.Message)
		select {
		case <-ctx.Done():
		case <-time.After(operation.ResendEvery):
		}
	}
}

// Answered takes an agent's answer to an order.
func (o *Operations) Answered(answer operation.Answer) {
	o.mu.Lock()
	r := o.runners[answer.Operation]
	o.mu.Unlock()
	if r != nil {
		r.deliver(answer)
	}
}

// AgentConnected makes the orders to a node go out again.
func (o *Operations) AgentConnected(string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.runners {
		r.wake()
	}
}

// TakeUp drives every operation that the records say is at work and that no runner drives: an earlier leader has left it, or a
// caller went away before it began. It returns how many are at work.
func (o *Operations) TakeUp() (operations int) {
	for _, op := range o.Store.Snapshot().LiveOperations() {
		if op.Result != operation.Parked {
			operations++
			o.drive(op.ID)
		}
	}
	return operations
}
