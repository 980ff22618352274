package moving

import (
	"slices"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

// How long a plan waits before it looks again.
const (
	firstBackOff  = 5 * time.Second  // after the first attempt
	secondBackOff = 15 * time.Second // after the second
	lookAgain     = 15 * time.Second // while other moves may still make room
	shortly       = time.Second      // until something is over that does not last, such as a store that is busy

	// silencePatience is how long a plan waits for a node that does not answer before its VMs count as staying.
	silencePatience = 5 * time.Minute
)

// Scene is what a driver looks at, all of one moment.
type Scene struct {
	Records
	Plan model.Plan
	At   time.Time
	Held bool // no move may begin now

	// Fleet is the plan's cluster, or nil if that cannot be looked at. It is asked for once in the life of a driver.
	Fleet func() *balance.Fleet
	// Size is how large a VM is that runs.
	Size func(vm *model.VM) (units.Bytes, int)
}

// Step is what is to be done now about a plan: begin a move and tell the driver what came of it, or write the plan's record,
// or wait. Whatever happens to records in the meantime is a reason to look again before the wait is over.
type Step struct {
	Begin *Attempt
	Write *Change
	Wait  time.Duration
	// GivenUp are the VMs that the plan will not ask for again.
	GivenUp []GivenUp
}

// Attempt is a move as placement is asked for it.
type Attempt struct {
	Move
	Plan      string // ID
	Caller    string
	Bandwidth units.Bytes // a second; 0: as the shell has it
	Purpose   placement.Purpose
	Among     []string        // node IDs: the only ones that will do; empty: any but the source
	Excluded  []string        // node IDs
	Unit      *placement.Unit // what comes along later
	Freely    bool            // hard rules among VMs weigh, and forbid nothing
}

// Ask makes a request for the attempt's VM one for the attempt.
func (a *Attempt) Ask(request *placement.Request) {
	request.Leave, request.Among, request.Excluded, request.Unit = true, a.Among, a.Excluded, a.Unit
}

// Policy is what the attempt is decided by, in a cluster with a policy.
func (a *Attempt) Policy(policy policies.Policy) policies.Policy {
	if a.Freely {
		return balance.WithoutVMRules(policy)
	}
	return policy
}

// Answer is what came of an attempt: one of the four.
type Answer struct {
	Began   *operation.Operation
	NotNow  bool     // there is a place, but the move has to wait for others
	Refusal *Refusal // it cannot be, now at least
	Unknown bool     // nobody can tell
}

// Refusal is why a move could not begin.
type Refusal struct {
	Cause     Cause
	Why       string              // in words
	Operation string              // ID: of Busy
	Decision  *placement.Decision // of NoNode
}

// Cause is the kind of a refusal.
type Cause int

// The causes of refusals.
const (
	Impossible Cause = iota // something about the VM: it is paused, or stays where it is
	NoNode                  // no node takes it
	Busy                    // an operation works on it
	Silent                  // a node does not answer
	Stale                   // the records changed, or the leader
)

// GivenUp is a VM that no node would take.
type GivenUp struct {
	model.Move
	Decision placement.Decision // the last one
}

// Driver carries one plan out. It remembers what no record tells, which a new leader finds out anew. A Driver never waits, stores
// or reads a clock, and is not safe for concurrent use. Call Look at first, whenever the records have changed and when the wait is
// over; and Tell after each Begin.
type Driver struct {
	refused map[string]*refused // by VM ID
	tied    map[string][]string // VM ID -> the VMs of the plan that hard rules tie to it, itself among them; nil: not known yet
	freely  bool                // the cluster's drains ignore hard rules among VMs where they stand in the way

	round
}

// refused is why a VM's move could not begin. No operation tells of it.
type refused struct {
	Refusal
	times int       // that count
	next  time.Time // when it is asked again
	final bool
	since time.Time // of a node's silence
}

// round is one look at the plan.
type round struct {
	Scene
	moves   []Move
	traffic Traffic
	queue   []*Move // whose turn is still to come

	begins *Move // what was asked for last
	ways   []Attempt
	kept   []string

	moving, blocked, waiting int
	asked                    []askedMove
	wait                     time.Duration
}

// askedMove is a move that was refused in this round, for a reason that may count.
type askedMove struct {
	*Move
	*refused
	yields bool // there may be a place for it that is kept free for VMs which follow others
}

// NewDriver makes the driver of a plan.
func NewDriver() *Driver { return &Driver{refused: map[string]*refused{}} }

// Look begins a round: it tells the first step.
func (d *Driver) Look(scene Scene) Step {
	plan := &scene.Plan
	if plan.State == model.PlanRunning {
		if why := reopened(scene.Records, plan); why != "" {
			return Step{Write: cancelled(plan, why, scene.At), Wait: shortly}
		}
		if scene.Held {
			return Step{Wait: shortly}
		}
	}
	d.round = round{Scene: scene, moves: Moves(scene.Records, *plan), traffic: TrafficOf(scene.Records, plan), wait: lookAgain}
	for i := range d.moves {
		if d.moves[i].State == Moving {
			d.moving++
		}
	}
	if plan.State == model.PlanRunning {
		d.tie()
		for _, stays := range []bool{false, true} { // what was not expected to move comes last
			for i := range d.moves {
				if d.moves[i].Stays == stays {
					d.queue = append(d.queue, &d.moves[i])
				}
			}
		}
	}
	return d.next()
}

// reopened tells that a node is no longer to be drained.
func reopened(records Records, plan *model.Plan) string {
	if plan.Kind != model.PlanDrain {
		return ""
	}
	node, there := records.Node(plan.Node)
	switch {
	case !there:
		return plan.NodeName + " was removed"
	case !node.Maintenance:
		return plan.NodeName + " was taken out of maintenance"
	default:
		return ""
	}
}

// tie finds out once which of the plan's VMs have to stay together.
func (d *Driver) tie() {
	if d.tied != nil {
		return
	}
	d.tied = map[string][]string{}
	fleet := d.Fleet()
	if fleet == nil {
		return
	}
	d.freely = d.Plan.Kind == model.PlanDrain && fleet.DrainIgnoresVMRules
	for _, unit := range affinity.Merged(fleet.Groups) {
		bySource := map[string][]string{}
		for i := range d.moves {
			if slices.Contains(unit, d.moves[i].VM) && !d.moves[i].Stays {
				bySource[d.moves[i].Source] = append(bySource[d.moves[i].Source], d.moves[i].VM)
			}
		}
		for _, together := range bySource {
			for _, vm := range together {
				d.tied[vm] = together
			}
		}
	}
}

// next is the first step of those whose turn has not come yet, or the end of the round.
func (d *Driver) next() Step {
	for len(d.queue) > 0 {
		move := d.queue[0]
		d.queue = d.queue[1:]
		if (move.State == Waiting || d.worthAsking(move)) && d.mayBegin(move) {
			d.begins, d.kept = move, d.keptFree(move)
			d.ways = d.waysTo(move)
			return Step{Begin: &d.ways[0]}
		}
	}
	return d.endRound()
}

// worthAsking tells whether a VM that could not leave a node when its drain began may be able to by now. What other plans
// let stay is better off where it is.
func (d *Driver) worthAsking(move *Move) bool {
	vm, there := d.VM(move.VM)
	return d.Plan.Kind == model.PlanDrain && move.State == model.MoveStays && there && vm.Holder == move.Source &&
		vm.Migration != model.MigrateNever
}

// mayBegin tells whether a move's turn has come.
func (d *Driver) mayBegin(move *Move) bool {
	last := d.refused[move.VM]
	switch ready := readyAt(move, last); {
	case last != nil && last.final:
		return false
	case ready.After(d.At):
		d.waiting++
		d.wait = min(d.wait, ready.Sub(d.At))
		return false
	case d.unitMoves(move), d.traffic.Full(move.Source, ""):
		d.blocked++ // of a unit one VM moves after the other, and all moves have their limits
		return false
	}
	return true
}

// readyAt is when a move may be tried again.
func readyAt(move *Move, last *refused) time.Time {
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

// Tell takes in what came of the step that was to begin a move, and tells the next one.
func (d *Driver) Tell(answer Answer) Step {
	move := d.begins
	refusal := answer.Refusal
	if refusal != nil && refusal.Cause == NoNode {
		if d.ways = d.ways[1:]; len(d.ways) > 0 {
			return Step{Begin: &d.ways[0]}
		}
	}
	switch {
	case answer.Began != nil:
		move.State, move.Operation = Moving, *answer.Began
		delete(d.refused, move.VM)
		d.traffic.add(answer.Began.Source, answer.Began.Target)
		d.moving++
	case answer.NotNow:
		d.blocked++
	case refusal != nil:
		d.note(move, refusal)
	default:
		d.waiting++
		d.wait = min(d.wait, shortly)
	}
	return d.next()
}

// note takes a refusal in.
func (d *Driver) note(move *Move, refusal *Refusal) {
	last := d.refused[move.VM]
	if last == nil {
		last = &refused{}
		d.refused[move.VM] = last
	}
	last.Refusal = *refusal
	if vm, _ := d.VM(move.VM); vm.Migration == model.MigrateNever {
		last.final = true
		return
	}
	switch refusal.Cause {
	case Busy:
		if op, known := d.Records.Operation(refusal.Operation); known && op.Result == operation.Parked {
			last.final = true
			return
		}
		last.next = d.At.Add(lookAgain)
		d.waiting++
	case Silent:
		if last.since.IsZero() {
			last.since = d.At
		}
		if last.next = d.At.Add(lookAgain); d.At.Sub(last.since) >= silencePatience {
			last.final = true
			return
		}
		d.waiting++
	case Stale:
		last.next = d.At.Add(shortly)
		d.waiting++
	default:
		last.since, last.next = time.Time{}, time.Time{}
		d.asked = append(d.asked, askedMove{move, last, refusal.Cause == NoNode && len(d.kept) > 0})
	}
	if last.next.After(d.At) {
		d.wait = min(d.wait, last.next.Sub(d.At))
	}
}

// endRound counts the refusals, and ends the plan if nothing of it will move any more.
func (d *Driver) endRound() Step {
	step := Step{GivenUp: d.count()}
	if d.moving+d.blocked+d.waiting == 0 && !d.expected() {
		step.Write, step.Wait = d.ended(), shortly
		return step
	}
	step.Wait = d.wait
	return step
}

// count counts the refusals of this round, unless another move may still make room. A VM that yields to others is counted when
// none of them waits for anything else: they might wait for each other for ever.
func (d *Driver) count() (gone []GivenUp) {
	moves, yields := d.moving+d.blocked > 0, d.waiting > 0
	for _, one := range d.asked {
		yields = yields || !one.yields
	}
	for _, one := range d.asked {
		switch {
		case one.yields && (moves || yields):
			d.waiting++
			continue
		case moves:
			one.next = d.At.Add(lookAgain)
			d.waiting++
			continue
		}
		if one.times++; one.times >= maxAttempts {
			one.final = true
			if one.Decision != nil {
				gone = append(gone, GivenUp{Move: one.Move.Move, Decision: *one.Decision})
			}
			continue
		}
		one.next = d.At.Add(backOff(one.times))
		d.wait = min(d.wait, one.next.Sub(d.At))
		d.waiting++
	}
	return gone
}

// expected tells whether a VM is still on its way to a node that is drained.
func (d *Driver) expected() bool {
	return d.Plan.Kind == model.PlanDrain && d.Plan.State == model.PlanRunning &&
		slices.ContainsFunc(d.LiveOperations(), func(op operation.Operation) bool {
			return op.Target == d.Plan.Node && op.Result != operation.Parked
		})
}
