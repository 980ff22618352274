package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// How long a plan waits before it tries what did not work again.
const (
	firstBackOff  = 5 * time.Second  // after the first attempt
	secondBackOff = 15 * time.Second // after the second
	lookAgain     = 15 * time.Second // while other moves may still make room
	shortly       = time.Second      // what passes by itself: the picture of a new leader, a store that is busy

	// silencePatience is how long a plan waits for a node that does not answer before its VMs count as staying.
	silencePatience = 5 * time.Minute
)

// executor carries one plan out. All that has to last is in the records: a new leader's executor goes on from there.
type executor struct {
	control *Control
	id      string
	refused map[string]*refused // by VM ID
	tied    map[string][]string // VM ID -> the VMs of the plan that hard rules tie to it, itself among them
	freely  bool                // the cluster's drains ignore hard rules among VMs where they stand in the way
	done    chan struct{}
}

// refused is why a VM's move could not begin. No operation tells of it, so it is soft: a new leader asks anew.
type refused struct {
	times    int // that count
	why      string
	next     time.Time // when it is asked again
	final    bool
	since    time.Time // of a node's silence
	decision *placement.Decision
}

// execute sets a plan's executor going, if this member leads.
func (c *Control) execute(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == 0 || c.executors[id] != nil {
		return
	}
	e := &executor{control: c, id: id, refused: map[string]*refused{}, done: make(chan struct{})}
	c.executors[id] = e
	go e.run(c.ctx)
}

func (e *executor) run(ctx context.Context) {
	c := e.control
	defer func() {
		c.mu.Lock()
		if c.executors[e.id] == e {
			delete(c.executors, e.id)
		}
		c.mu.Unlock()
		close(e.done)
	}()
	for ctx.Err() == nil {
		snapshot := c.Store.Snapshot()
		plan, known := snapshot.Plan(e.id)
		if !known || !unfinished(&plan) {
			return
		}
		timer := time.NewTimer(e.advance(ctx, snapshot, &plan))
		select {
		case <-ctx.Done():
		case <-snapshot.Changed():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round is one look at the plan.
type round struct {
	*executor
	snapshot *state.Snapshot
	plan     *cluster.Plan
	moves    []MoveNow
	traffic  traffic
	at       time.Time

	moving, blocked, waiting int
	asked                    []*refused // in this round
	wait                     time.Duration
}

// advance begins the moves that may begin, or ends the plan. It returns how long to wait when nothing changes meanwhile.
func (e *executor) advance(ctx context.Context, snapshot *state.Snapshot, plan *cluster.Plan) time.Duration {
	c := e.control
	if plan.State == cluster.PlanRunning {
		if why := openedAgain(snapshot, plan); why != "" {
			e.cancel(ctx, plan, why)
			return shortly
		}
		if quarantined(snapshot) != nil || !c.settled(snapshot) || !c.rallied(snapshot) || plan.Caller == berth && c.crowded() {
			return shortly
		}
	}
	r := &round{
		executor: e, snapshot: snapshot, plan: plan, moves: Moves(snapshot, *plan), traffic: trafficOf(snapshot, plan), at: c.Now(),
		wait: lookAgain,
	}
	for i := range r.moves {
		if r.moves[i].State == MoveMoving {
			r.moving++
		}
	}
	if plan.State == cluster.PlanRunning {
		e.tie(snapshot, plan, r.moves)
		r.begin(ctx)
		r.count(ctx)
	}
	if r.moving+r.blocked+r.waiting == 0 && !r.expected() && ctx.Err() == nil {
		e.end(ctx, plan, r.moves)
		return shortly
	}
	return r.wait
}

// openedAgain tells that a node is no longer to be drained.
func openedAgain(snapshot *state.Snapshot, plan *cluster.Plan) string {
	if plan.Kind != cluster.PlanDrain {
		return ""
	}
	node, there := snapshot.Node(plan.Node)
	switch {
	case !there:
		return plan.NodeName + " was removed"
	case !node.Maintenance:
		return plan.NodeName + " was taken out of maintenance"
	default:
		return ""
	}
}

// expected tells whether a VM is still on its way to a node that is drained.
func (r *round) expected() bool {
	return r.plan.Kind == cluster.PlanDrain && r.plan.State == cluster.PlanRunning &&
		slices.ContainsFunc(r.snapshot.LiveOperations(), func(op operation.Operation) bool {
			return op.Target == r.plan.Node && op.Result != operation.Parked
		})
}

// tie finds out once which of the plan's VMs have to keep together.
func (e *executor) tie(snapshot *state.Snapshot, plan *cluster.Plan, moves []MoveNow) {
	if e.tied != nil {
		return
	}
	e.tied = map[string][]string{}
	fleet, err := e.control.fleet(snapshot, e.control.Inventory.View(snapshot, e.control.Now()), plan.Cluster)
	if err != nil {
		e.control.Logger.Warn("a plan is carried out without its groups", "plan", e.id, "error", err)
		return
	}
	e.freely = plan.Kind == cluster.PlanDrain && fleet.DrainIgnoresVMRules
	for _, unit := range affinity.Merged(fleet.Groups) {
		bySource := map[string][]string{}
		for i := range moves {
			if slices.Contains(unit, moves[i].VM) && !moves[i].Stays {
				bySource[moves[i].Source] = append(bySource[moves[i].Source], moves[i].VM)
			}
		}
		for _, together := range bySource {
			for _, vm := range together {
				e.tied[vm] = together
			}
		}
	}
}

// begin begins every move whose turn has come, those that were not expected to work last.
func (r *round) begin(ctx context.Context) {
	for _, stays := range []bool{false, true} {
		for i := range r.moves {
			move := &r.moves[i]
			if ctx.Err() == nil && move.Stays == stays && (move.State == MoveWaiting || r.worthAsking(move)) {
				r.turn(ctx, move)
			}
		}
	}
}

// worthAsking tells whether a VM that could not leave a node when its drain began may be able to by now. What other plans
// let stay is better off where it is.
func (r *round) worthAsking(move *MoveNow) bool {
	vm, there := r.snapshot.VM(move.VM)
	return r.plan.Kind == cluster.PlanDrain && move.State == MoveStays && there && vm.Holder == move.Source && vm.Migration != cluster.MigrateNever
}

// turn begins a move, or notes why not.
func (r *round) turn(ctx context.Context, move *MoveNow) {
	last := r.refused[move.VM]
	switch ready := r.ready(move, last); {
	case last != nil && last.final:
		return
	case ready.After(r.at):
		r.waiting++
		r.wait = min(r.wait, ready.Sub(r.at))
		return
	case r.unitMoves(move), r.traffic.full(move.Source, ""):
		r.blocked++ // one of a unit after the other, and so many at once
		return
	}
	made, err := r.ask(ctx, move)
	var refusal *Error
	switch {
	case err == nil && made.Operation.ID != "":
		move.State, move.Operation = MoveMoving, made.Operation
		delete(r.refused, move.VM)
		r.traffic.add(&made.Operation)
		r.moving++
	case err == nil:
		r.note(move, &Error{Code: Conflict, Message: made.Decision.Reason})
	case errors.Is(err, errNotNow):
		r.blocked++
	case errors.As(err, &refusal):
		r.note(move, refusal)
	default:
		r.waiting++
		r.wait = min(r.wait, shortly)
		if ctx.Err() == nil {
			r.control.Logger.Warn("a move of a plan could not begin", "plan", r.id, "vm", move.VMName, "error", err)
		}
	}
}

// ready is when a move may be tried again.
func (r *round) ready(move *MoveNow, last *refused) time.Time {
	var at time.Time
	if last != nil {
		at = last.next
	}
	if op := &move.Operation; op.Result == operation.Failed {
		if after := op.EndedAt.Add(backOff(move.Attempts)); after.After(at) {
			at = after
		}
	}
	return at
}

func backOff(attempts int) time.Duration {
	if attempts <= 1 {
		return firstBackOff
	}
	return secondBackOff
}

// unitMoves tells whether another VM that has to stay with this one is on its way.
func (r *round) unitMoves(move *MoveNow) bool {
	return slices.ContainsFunc(r.moves, func(other MoveNow) bool {
		return other.VM != move.VM && other.State == MoveMoving && slices.Contains(r.tied[move.VM], other.VM)
	})
}

// ask asks placement for the move, at first with all that is wanted of it and then with less, and begins it.
func (r *round) ask(ctx context.Context, move *MoveNow) (made Migration, err error) {
	kept := r.keptFree(move)
	for _, wanted := range r.wants(move) {
		wanted.Excluded = union(kept, wanted.Excluded)
		made, err = r.control.move(ctx, wanted)
		if refusal := (*Error)(nil); !errors.As(err, &refusal) || refusal.Code != NoNodeFits {
			return made, err
		}
	}
	if len(kept) > 0 {
		return made, errNotNow
	}
	return made, err
}

// keptFree are the nodes to which VMs of other units are still to follow the first of theirs: their room is taken, although
// nothing reserves it.
func (r *round) keptFree(move *MoveNow) []string {
	var kept []string
	goal, _ := r.unitOf(move)
	for i := range r.moves {
		first := &r.moves[i]
		gone := first.State == MoveMoving || first.State == MoveMoved
		if !gone || first.Operation.Target == goal || slices.Contains(r.tied[move.VM], first.VM) {
			continue
		}
		if slices.ContainsFunc(r.moves, func(other MoveNow) bool {
			return slices.Contains(r.tied[first.VM], other.VM) && r.follows(&other)
		}) {
			kept = append(kept, first.Operation.Target)
		}
	}
	return kept
}

// union are the IDs of both lists, ascending.
func union(a, b []string) []string {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// follows tells whether a VM is still to go where its unit went.
func (r *round) follows(move *MoveNow) bool {
	return move.State == MoveWaiting && (r.refused[move.VM] == nil || !r.refused[move.VM].final)
}

// wants are the ways to ask for a move, the best first. Where a drain's VM goes is the engine's to say; the other plans are
// about their target.
func (r *round) wants(move *MoveNow) []wantedMove {
	alone := wantedMove{quiet: true, MigrateVM: MigrateVM{
		VM: move.VM, Bandwidth: r.plan.Bandwidth, Caller: r.plan.Caller, Plan: r.id, Purpose: purposeOf(r.plan.Kind), Leave: true,
	}}
	goal, rest := r.unitOf(move)
	together := alone
	if together.Unit = rest; goal != "" {
		together.Unit, together.Among = nil, []string{goal}
	}
	drain := r.plan.Kind == cluster.PlanDrain
	if !drain {
		together.Among = []string{r.plannedTarget(move)}
	}
	wants := []wantedMove{together}
	if failed := r.failedTargets(move.VM); len(failed) > 0 && (drain || r.hardRepair()) {
		elsewhere := together
		if elsewhere.Excluded = failed; !drain {
			elsewhere.Among = nil // whatever node keeps the hard rules repairs them
		}
		wants = []wantedMove{elsewhere, together}
	}
	if drain && (goal != "" || rest != nil) {
		wants = append(wants, alone)
	}
	if r.freely {
		alone.freely = true
		wants = append(wants, alone)
	}
	return wants
}

// plannedTarget is where the plan wants a VM, whatever was tried since.
func (r *round) plannedTarget(move *MoveNow) string {
	at := slices.IndexFunc(r.plan.Moves, func(m cluster.Move) bool { return m.VM == move.VM })
	if at < 0 {
		return move.Target
	}
	return r.plan.Moves[at].Target
}

// hardRepair tells whether the plan repairs a group with a hard rule.
func (r *round) hardRepair() bool {
	record, known := r.snapshot.Resource(r.plan.Group)
	if r.plan.Kind != cluster.PlanRepair || !known {
		return false
	}
	group := cluster.GroupOf(&record, r.plan.Cluster)
	return group.VMsRule.Hard() || group.NodesRule.Hard()
}

// failedTargets are the nodes that a VM of the plan could not move to, ascending.
func (r *round) failedTargets(vm string) []string {
	var failed []string
	for _, op := range r.snapshot.OperationsOfPlan(r.id) {
		if op.VM == vm && op.Result == operation.Failed && !slices.Contains(failed, op.Target) {
			failed = append(failed, op.Target)
		}
	}
	slices.Sort(failed)
	return failed
}

// unitOf is where the VMs that have to stay with this one have gone, if any has; else those that are still to come along.
func (r *round) unitOf(move *MoveNow) (goal string, rest *placement.Unit) {
	var newest time.Time
	var along []cluster.VM
	for i := range r.moves {
		other := &r.moves[i]
		if other.VM == move.VM || !slices.Contains(r.tied[move.VM], other.VM) {
			continue
		}
		switch {
		case other.State == MoveMoved && other.Operation.CreatedAt.After(newest):
			goal, newest = other.Operation.Target, other.Operation.CreatedAt
		case r.follows(other):
			if vm, there := r.snapshot.VM(other.VM); there {
				along = append(along, vm)
			}
		}
	}
	return goal, asUnit(along, r.control.sizeNow)
}

func purposeOf(kind cluster.PlanKind) placement.Purpose {
	switch kind {
	case cluster.PlanDrain:
		return placement.ForDrain
	case cluster.PlanReturn:
		return placement.ForReturn
	case cluster.PlanRepair:
		return placement.ForRepair
	default:
		return placement.ForBalance
	}
}

// note takes a refusal in.
func (r *round) note(move *MoveNow, refusal *Error) {
	last := r.refused[move.VM]
	if last == nil {
		last = &refused{}
		r.refused[move.VM] = last
	}
	last.why, last.decision = refusal.Message, refusal.Decision
	if vm, _ := r.snapshot.VM(move.VM); vm.Migration == cluster.MigrateNever {
		last.final = true
		return
	}
	switch refusal.Code {
	case Busy:
		if op, known := r.snapshot.Operation(refusal.Operation); known && op.Result == operation.Parked {
			last.final = true
			return
		}
		last.next = r.at.Add(lookAgain)
		r.waiting++
	case Unavailable:
		if last.since.IsZero() {
			last.since = r.at
		}
		if last.next = r.at.Add(lookAgain); r.at.Sub(last.since) >= silencePatience {
			last.final = true
			return
		}
		r.waiting++
	case StaleView, NoLeader:
		last.next = r.at.Add(shortly)
		r.waiting++
	default:
		last.since = time.Time{}
		r.asked = append(r.asked, last)
	}
	if last.next.After(r.at) {
		r.wait = min(r.wait, last.next.Sub(r.at))
	}
}

// count counts the refusals of this round. While another move may still change the picture they do not count.
func (r *round) count(ctx context.Context) {
	for _, one := range r.asked {
		if r.moving+r.blocked > 0 {
			one.next = r.at.Add(lookAgain)
			r.waiting++
			continue
		}
		if one.times++; one.times >= maxMoveAttempts {
			one.final = true
			if one.decision != nil {
				_ = r.control.recordRefusal(ctx, *one.decision)
			}
			continue
		}
		one.next = r.at.Add(backOff(one.times))
		r.wait = min(r.wait, one.next.Sub(r.at))
		r.waiting++
	}
}

// cancel ends a plan whose reason has gone. What copies ends as it does.
func (e *executor) cancel(ctx context.Context, plan *cluster.Plan, why string) {
	after := *plan
	after.State, after.Message, after.UpdatedAt = cluster.PlanCancelled, why, e.control.Now()
	e.control.writePlan(ctx, &after, cancelKind, "no further move begins: "+why)
}

// end writes down how each move came out.
func (e *executor) end(ctx context.Context, plan *cluster.Plan, moves []MoveNow) {
	after := *plan
	after.Moves = make([]cluster.Move, 0, len(moves))
	for i := range moves {
		after.Moves = append(after.Moves, e.ended(&moves[i]))
	}
	if after.State == cluster.PlanRunning {
		after.State = cluster.PlanDone
		if slices.ContainsFunc(after.Moves, func(m cluster.Move) bool { return m.Result == MoveFailed }) {
			after.State = cluster.PlanFailed
		}
	}
	summary := outcome(after.Moves)
	if after.Message != "" {
		summary = after.Message + ": " + summary
	}
	after.Message, after.UpdatedAt = summary, e.control.Now()
	after.EndedAt = after.UpdatedAt
	e.control.writePlan(ctx, &after, "end plan", summary)
}

func (e *executor) ended(now *MoveNow) cluster.Move {
	move := now.Move
	move.Result, move.Stays = now.State, now.State == MoveStays
	last := e.refused[move.VM]
	switch {
	case now.State == MoveWaiting:
		move.Result, move.Stays = MoveStays, true
		if last != nil {
			move.Reason = last.why
		}
	case now.State == MoveStays && last != nil:
		move.Reason = last.why
	case now.State == MoveFailed:
		move.Reason = now.Message
	}
	if move.Result != MoveMoved {
		move.Target, move.TargetName = "", ""
	}
	return move
}

// outcome is how a plan's moves came out, in words.
func outcome(moves []cluster.Move) string {
	by := map[string][]cluster.Move{}
	for _, move := range moves {
		by[move.Result] = append(by[move.Result], move)
	}
	parts := []string{fmt.Sprintf("%d moved", len(by[MoveMoved]))}
	say := func(result, one, several string) {
		switch found := by[result]; len(found) {
		case 0:
		case 1:
			parts = append(parts, fmt.Sprintf("1 %s: %s", one, found[0].VMName)+because(found[0].Reason))
		default:
			var names []string
			for _, move := range found[:min(len(found), maxTold)] {
				names = append(names, move.VMName+because(move.Reason))
			}
			if more := len(found) - maxTold; more > 0 {
				names = append(names, fmt.Sprintf("and %d more", more))
			}
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(found), several, strings.Join(names, ", ")))
		}
	}
	say(MoveFailed, "failed", "failed")
	say(MoveStays, "stays", "stay")
	if n := len(by[MoveLeft]); n > 0 {
		parts = append(parts, fmt.Sprintf("%d left where they are", n))
	}
	if n := len(by[MoveGone]); n > 0 {
		parts = append(parts, fmt.Sprintf("%d gone meanwhile", n))
	}
	return strings.Join(parts, "; ")
}

// maxTold is how many VMs a plan's end names of each outcome. The plan has all of them.
const maxTold = 3

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}
