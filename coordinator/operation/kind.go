package operation

import (
	"time"

	"berth/coordinator/model"
)

// kind is all that depends on what an operation does. Each one stands in a file of its own and in the list kinds.
type kind struct {
	name Kind

	// phases are those in which one node has an order. What is done in the others is the same for all kinds.
	phases map[Phase]phase
	// judge decides, by what its nodes show, an operation that has entered Judging. It reports false when that is not enough.
	judge func(t *transition, source, target Observation) (decided bool)
	// cleared continues when volumes are removed, or when they have to be left.
	cleared func(t *transition)
	// done adds to the records of an operation that has ended well; nil: nothing.
	done func(t *transition)

	reserves bool // its target keeps room for the VM
	brings   bool // when it is done its target has the VM
	stops    bool // when it is done no node has the VM
	forgets  bool // when it is done the record of the VM is deleted

	// bound is why it cannot be cancelled; the zero value: it can be.
	bound Bound
	// level is the feature level from which members know the kind; 0: all do.
	level uint32

	// meanwhile is what the VM shows while it is worked on.
	meanwhile Meanwhile
	// begun says for the VM's history what has begun: "stops on node1". Doing says it to who waits: "stopping on node1". Ended
	// says for the history what has ended well, with the kind of event.
	begun, doing func(op *Operation) string
	ended        func(op *Operation) (event, text string)
}

// kinds are the kinds of operation.
var kinds = []*kind{
	&kindStart, &kindStop, &kindMigrate, &kindDelete, &kindAdopt, &kindRelease, &kindReboot, &kindPause, &kindResume, &kindAttach,
	&kindDetach, &kindMedia, &kindResize, &kindSnapshot, &kindRestore, &kindForget,
}

// KindNames are the names of all kinds.
func KindNames() []string {
	names := make([]string, 0, len(kinds))
	for _, one := range kinds {
		names = append(names, string(one.name))
	}
	return names
}

// kindUnknown is for the record of a kind that this release does not have: its operations give no orders.
var kindUnknown = kind{
	begun: func(op *Operation) string { return string(op.Kind) },
	doing: func(op *Operation) string { return string(op.Kind) },
	ended: func(op *Operation) (event, text string) { return "vm." + string(op.Kind), "done" },
}

func (k Kind) traits() *kind {
	for _, one := range kinds {
		if one.name == k {
			return one
		}
	}
	return &kindUnknown
}

// phase is one phase of an operation in which a node has an order.
type phase struct {
	node func(op *Operation) string // the ID of the node that has the order: only its answer counts
	// order has the action, the epoch, and what else the action needs.
	order func(op *Operation, vm *model.VM) Order
	// answered continues with the node's answer. It reports false when nothing follows, and the same is ordered again.
	answered func(t *transition, answer Answer) bool
	// off continues without the node, which is proven to be off. It reports false when that is not possible. Nil: it counts as
	// an answer that is in doubt.
	off func(t *transition) bool
	// overdue continues an operation whose record has not changed for some time. It reports false when it goes on waiting. Nil:
	// it always does.
	overdue func(t *transition, waited time.Duration) bool
	// suspect continues when the target is silent or ails. It reports false when nothing follows. Nil: nothing does.
	suspect func(t *transition, why string) bool
	// unjournalled continues when the node's journal takes no entry. It reports false when the order is repeated until it does. Nil:
	// it always is.
	unjournalled func(t *transition, why string) bool
	// unbegun ends an operation whose order was taken back before its node had begun it. Nil: the order is never taken back.
	unbegun func(t *transition)

	dated     bool // the order is taken back when its node was not heard in time
	soon      bool // the order is repeated soon, because what the node shows may change
	cancels   bool // the node gives the order up when the operation is cancelled
	explained bool // the operation's message says already why it is in this phase
}

func atSource(op *Operation) string { return op.Source }

func atTarget(op *Operation) string { return op.Target }

func atLeftover(op *Operation) string { return op.Leftover }

// Bound is why an operation cannot be taken back, and what to do instead.
type Bound struct {
	Why, NextStep string
}

// Meanwhile is what a VM shows while an operation works on it.
type Meanwhile string

// What a VM shows meanwhile; empty: that is not said.
const (
	Starting  Meanwhile = "starting"
	Stopping  Meanwhile = "stopping"
	Migrating Meanwhile = "migrating"
	Running   Meanwhile = "running" // its guest does not notice
)

// Meanwhile is what a VM shows while an operation of this kind works on it.
func (k Kind) Meanwhile() Meanwhile { return k.traits().meanwhile }

// Level is the feature level that members need for operations of this kind; 0: any.
func (k Kind) Level() uint32 { return k.traits().level }

// Dated tells whether operations of this kind are given up when their node is not heard in time.
func (k Kind) Dated() bool { return k.traits().phases[Dispatched].dated }

// Bound says why operations of this kind cannot be taken back; the zero value: they can be.
func (k Kind) Bound() Bound { return k.traits().bound }

// Brings tells whether the target has the VM once an operation of this kind is done.
func (k Kind) Brings() bool { return k.traits().brings }

// Stops tells whether no node has the VM once an operation of this kind is done.
func (k Kind) Stops() bool { return k.traits().stops }

// Forgets tells whether the record of the VM is deleted once an operation of this kind is done.
func (k Kind) Forgets() bool { return k.traits().forgets }

// Begun says what has begun, for the history of the VM.
func (o *Operation) Begun() string { return o.Kind.traits().begun(o) }

// Doing says what is being done, to who waits for it.
func (o *Operation) Doing() string {
	if o.Awaits() {
		return o.doneLater(string(o.Kind))
	}
	return o.Kind.traits().doing(o)
}

// Ended says what an operation has come to that ended well, for the history of the VM: the kind of event, and its text.
func (o *Operation) Ended() (event, text string) { return o.Kind.traits().ended(o) }
