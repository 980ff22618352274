package operation

import (
	"slices"
	"time"

	"berth/coordinator/cluster"
)

// How long a driver waits before it asks for the same orders again. Agents know operation and step, so a repetition costs a
// message; it covers whatever got lost without a session closing.
const (
	ResendEvery = 15 * time.Second
	LookEvery   = 2 * time.Second // judging, discarding and clearing: what the nodes show may change
)

// Picture is an operation's record with what has to be known beside it, all of one moment.
type Picture struct {
	Operation Operation
	VM        cluster.VM
	Fenced    []string // IDs of nodes that are proven to be off
	Turn      bool     // of a queued start: it may begin
}

// Todo is what a leader does next about an operation: end its work when it is over; place it; commit; or send the orders and
// look again after the pause, or sooner when an answer, a cancel, a session or a proof has come.
type Todo struct {
	Over    bool // it has ended, or is parked: nobody drives it any more
	Place   bool // find the next node for it
	Commit  *Next
	Orders  []Order
	Cancels []Order // of the orders, those that their agents are to give up
	Pause   time.Duration
}

// Driver is what a leader knows about one live operation beside its record: which looks it has asked for, and what they
// have shown. Whoever drives an operation calls Look at first, after each commit, and whenever time has passed or something
// has happened, and Answer for each answer. A Driver never waits, sends or reads a clock, and is not safe for concurrent use.
type Driver struct {
	picture Picture
	round   uint16
	seen    map[string]Observation // by node ID, of this round
}

// NewDriver makes the driver of an operation. The first round should differ from one leader to the next: an agent may still
// answer what the last one asked.
func NewDriver(round uint16) *Driver { return &Driver{round: round} }

// Look says what is to be done now.
func (d *Driver) Look(picture Picture, at time.Time) Todo {
	d.picture, d.seen = picture, map[string]Observation{}
	op, vm := picture.Operation, picture.VM
	switch {
	case !op.Live() || op.Result == Parked:
		return Todo{Over: true}
	case op.Phase == Placing:
		return Todo{Place: true}
	case op.Phase == Queued:
		return d.queued(at)
	}
	d.round++
	if next, moved := d.proven(at); moved {
		return Todo{Commit: &next}
	}
	if next, overdue := Overdue(op, vm, at); overdue {
		return Todo{Commit: &next}
	}
	todo := Todo{Pause: ResendEvery}
	switch op.Phase {
	case Judging, Discarding, Clearing:
		todo.Pause = LookEvery
	}
	todo.Orders = slices.DeleteFunc(Orders(op, vm, d.round), func(order Order) bool { return d.isFenced(order.Node) })
	if op.Cancel && (op.Phase == Copying || op.Phase == Preparing) {
		todo.Cancels = todo.Orders
	}
	return todo
}

// queued is what becomes of a start that waits for its turn. No order of it is out, so it can be ended at once.
func (d *Driver) queued(at time.Time) Todo {
	op, vm := d.picture.Operation, d.picture.VM
	var next Next
	switch {
	case op.Cancel:
		next = Abandon(op, vm, "cancelled while it waited for its turn", at)
	case d.isFenced(op.Target):
		t := newTransition(op, vm, at)
		t.startFailed("", t.name(op.Target)+" "+off)
		next = t.Next
	case d.picture.Turn:
		next = Dispatch(op, vm, at)
	default:
		return Todo{Pause: ResendEvery}
	}
	return Todo{Commit: &next}
}

// Answer takes an agent's answer. It reports false when nothing follows from it yet.
func (d *Driver) Answer(answer Answer, at time.Time) (Next, bool) {
	op, vm := d.picture.Operation, d.picture.VM
	switch {
	case d.isFenced(answer.Node):
		return Next{}, false // from before it was switched off
	case op.Phase != Judging:
		return Step(op, vm, answer, at)
	case answer.Step != op.Step|uint32(d.round)<<16 || answer.Outcome != OutcomeDone:
		return Next{}, false
	}
	d.seen[answer.Node] = answer.Seen
	return Settle(op, vm, d.seen, at)
}

// proven takes the proof that a node is off for what that node would answer: it positively runs nothing.
func (d *Driver) proven(at time.Time) (Next, bool) {
	op := d.picture.Operation
	if op.resolved() && op.Phase == Discarding && d.isFenced(op.Leftover) {
		return Step(op, d.picture.VM, Answer{
			Operation: op.ID, Node: op.Leftover, Step: op.Step, Outcome: OutcomeDone, Seen: Observation{State: cluster.DomainAbsent},
		}, at)
	}
	if op.Phase != Judging {
		for _, node := range d.picture.Fenced {
			if next, moved := Off(op, d.picture.VM, node, at); moved {
				return next, true
			}
		}
		return Next{}, false
	}
	for _, node := range []string{op.Source, op.Target} {
		if d.isFenced(node) {
			d.seen[node] = Observation{State: cluster.DomainAbsent}
		}
	}
	if len(d.seen) == 0 {
		return Next{}, false
	}
	return Settle(op, d.picture.VM, d.seen, at)
}

func (d *Driver) isFenced(node string) bool { return slices.Contains(d.picture.Fenced, node) }
