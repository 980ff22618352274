package operation

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/model"
)

// How long a driver waits before it asks for the same orders again. Agents know operation and step, so a repetition costs
// only a message. It covers messages that were lost without the session ending.
const (
	ResendEvery = 15 * time.Second
	LookEvery   = 2 * time.Second // judging, discarding and clearing: what the nodes show may change
)

// Input is an operation's record and what else its driver has to know, all of one moment.
type Input struct {
	Operation Operation
	VM        model.VM
	Fenced    []string // IDs of nodes that are proven to be off
	Turn      bool     // the node of a queued start is free for it, or one that was silent is heard
	Elsewhere bool     // the node of a queued start answers none: another one is to be found
	Boot      string   // of the target's host, as it is heard; empty: it was not
	Silent    bool     // the source is not heard
	Unlisted  bool     // the source of a stop that waits is heard, and has not listed its guests
	Held      string   // why an order that waited for its node is not given now that this is heard; empty: it is
	// Came and Fell are when the VM of a migration came to the source, and when that was heard last before it booted or fell silent, by the
	// leader's own clock; zero: it does not know.
	Came, Fell time.Time
	Suspect    string // why the target should get no guest now: "node2 is silent for 20s"; empty: it may
}

// Todo is what a leader does next about an operation: end its work when it is over; place it; commit; or send the orders and
// look again after the pause. It looks again sooner when an answer, a cancel, a session or a proof has come.
type Todo struct {
	Over    bool // it has ended or is parked: no driver works on it any more
	Place   bool // find the next node for it, and if there is none look again after the pause
	Commit  *Next
	Orders  []Order
	Cancels []Order // those of the orders that their agents should give up
	Pause   time.Duration
}

// Driver is what a leader knows about one live operation in addition to its record: which looks it has asked for, and what
// they showed. Its user calls Look at first, after each commit, and whenever time has passed or something has happened; and
// Answer for each answer. A Driver never waits, sends or reads a clock, and is not safe for concurrent use.
type Driver struct {
	input Input
	round uint16
	seen  map[string]Observation // by node ID, of this round
}

// NewDriver makes the driver of an operation. Leaders should begin with different rounds, because an agent may still answer a
// question of the last leader.
func NewDriver(round uint16) *Driver { return &Driver{round: round} }

// Look says what to do now.
func (d *Driver) Look(input Input, at time.Time) Todo {
	d.input, d.seen = input, map[string]Observation{}
	op, vm := input.Operation, input.VM
	switch {
	case !op.Live() || op.Result == Parked:
		return Todo{Over: true}
	case op.Phase == Placing:
		return Todo{Place: true}
	case op.Awaits():
		return d.awaiting(at)
	case op.Phase == Queued:
		return d.queued(at)
	}
	d.round++
	if next, moved := d.proven(at); moved {
		return Todo{Commit: &next}
	}
	if next, lost := lostMeanwhile(op, vm, input.Boot, at); lost {
		return Todo{Commit: &next}
	}
	// What a silent node may have is ended by that node alone, once it is heard: until then it may carry it out.
	unheard := input.Silent && op.Kind.traits().phases[op.Phase].unbegun != nil && (op.Cancel || op.GivenUp != "" || op.WhenBack)
	if next, overdue := Overdue(op, vm, at); overdue && !unheard {
		return Todo{Commit: &next}
	}
	if next, suspected := Suspected(op, vm, input.Suspect, at); suspected {
		return Todo{Commit: &next}
	}
	if next, late := givenUp(&input, at); late {
		return Todo{Commit: &next}
	}
	now := op.Kind.traits().phases[op.Phase]
	todo := Todo{Pause: ResendEvery}
	if left := AwaitPatience - at.Sub(op.UpdatedAt); now.dated && left > 0 {
		todo.Pause = min(todo.Pause, left)
	}
	if now.suspect != nil {
		todo.Pause = WatchEvery
	}
	if now.soon || op.Phase == Judging {
		todo.Pause = LookEvery
	}
	todo.Orders = slices.DeleteFunc(Orders(op, vm, d.round), func(order Order) bool { return d.isFenced(order.Node) })
	if now.unbegun != nil && (op.Cancel || op.GivenUp != "") {
		for i := range todo.Orders {
			todo.Orders[i].TakenBack = true
		}
	}
	if (op.Cancel || op.GivenUp != "") && now.cancels {
		todo.Cancels = todo.Orders
	}
	return todo
}

// queued is what to do about a start that waits for its turn. It has given no order, so it can be ended at once.
func (d *Driver) queued(at time.Time) Todo {
	op, vm := d.input.Operation, d.input.VM
	var next Next
	switch {
	case op.Cancel:
		next = Abandon(op, vm, "cancelled while it waited for its turn", at)
	case d.isFenced(op.Target):
		t := newTransition(op, vm, at)
		t.startFailed("", t.name(op.Target)+" "+off)
		next = t.Next
	case d.input.Elsewhere && op.Pinned == "":
		return Todo{Place: true, Pause: ResendEvery}
	case d.input.Turn:
		op.TargetBoot = cmp.Or(d.input.Boot, op.TargetBoot) // no order was given before
		next = Dispatch(op, vm, at)
	default:
		return Todo{Pause: ResendEvery}
	}
	return Todo{Commit: &next}
}

// Answer takes an agent's answer. It reports false when nothing follows from it yet.
func (d *Driver) Answer(answer Answer, at time.Time) (Next, bool) {
	op, vm := d.input.Operation, d.input.VM
	switch {
	case d.isFenced(answer.Node):
		return Next{}, false // from before it was switched off
	case op.Phase != Judging:
		return Step(op, vm, answer, at)
	case answer.Step != op.Step|uint32(d.round)<<16 || answer.Outcome != OutcomeDone:
		return Next{}, false
	}
	d.seen[answer.Node] = answer.Seen
	return d.settle(at)
}

// settle decides from what was seen.
func (d *Driver) settle(at time.Time) (Next, bool) {
	op := d.input.Operation
	if source, looked := d.seen[op.Source]; looked {
		source.Came, source.Fell = d.input.Came, d.input.Fell
		d.seen[op.Source] = source
	}
	return Settle(op, d.input.VM, d.seen, at)
}

// proven uses the proof that a node is off as the answer of that node: nothing runs there.
func (d *Driver) proven(at time.Time) (Next, bool) {
	op := d.input.Operation
	if op.Phase != Judging {
		for _, node := range d.input.Fenced {
			if next, moved := Off(op, d.input.VM, node, at); moved {
				return next, true
			}
		}
		return Next{}, false
	}
	for _, node := range []string{op.Source, op.Target} {
		if d.isFenced(node) {
			d.seen[node] = Observation{State: model.DomainAbsent, Anew: true}
		}
	}
	if len(d.seen) == 0 {
		return Next{}, false
	}
	return d.settle(at)
}

func (d *Driver) isFenced(node string) bool { return slices.Contains(d.input.Fenced, node) }
