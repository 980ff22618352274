package operation

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
)

// MaxAttempts is how many nodes a start tries before it fails, and how often a stop whose end nobody saw is ordered.
const MaxAttempts = 3

// Next is the records to commit after an answer. The caller commits them as one, or not at all.
type Next struct {
	Operation Operation
	VM        model.VM
	DeleteVM  bool // the VM's record is deleted: its first start has failed, or its deletion was asked for

	// Wrote is the node, by ID, whose disks the guest writes to now, or may have written to though its start is taken for failed; empty: none.
	Wrote string

	// Volumes is where disks are from now on, by disk ID; DeleteDisks is the IDs of disks whose records are deleted with the
	// VM's.
	Volumes     map[string]model.Volume
	DeleteDisks []string
}

// Step takes one answer and returns what follows. It reports false when the answer changes nothing: it belongs to another
// step or phase, or is a repetition.
func Step(op Operation, vm model.VM, answer Answer, at time.Time) (Next, bool) {
	if !op.Live() || op.Result == Parked || answer.Step != op.Step {
		return Next{}, false
	}
	if !op.Concerns(answer.Node) {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	switch {
	case answer.Outcome == OutcomeRefused && answer.Code == StaleTerm:
		return Next{}, false // the order came from an older leader; ours is on its way
	case answer.Outcome == OutcomeRefused && answer.Code == Journal:
		return t.Next, t.repeated(answer)
	case answer.Outcome == OutcomeRefused && answer.Code == TooLate:
		return t.Next, unbegun(t, answer)
	case !t.apply(answer):
		return Next{}, false
	}
	t.sawOn(answer.Node, answer.Seen)
	return t.Next, true
}

// Concerns tells that a node has a part in the operation. What another one says of it means nothing.
func (o *Operation) Concerns(node string) bool {
	return node != "" && (node == o.Source || node == o.Target || node == o.Leftover)
}

// unbegun takes the answer of a node that it had not begun the order, and never will.
func unbegun(t *transition, answer Answer) bool {
	now, ordered := t.kind.phases[t.Operation.Phase]
	if !ordered || now.unbegun == nil || answer.Node != now.node(&t.Operation) {
		return false
	}
	t.noteAnswer(answer)
	now.unbegun(t)
	return true
}

// sawOn takes note under which boot of its holder's host the VM is there.
func (t *transition) sawOn(node string, seen Observation) {
	if t.VM.Holder == node && node != "" && seen.State.Lives() && seen.Boot != "" {
		t.VM.Whereabouts = model.Whereabouts{Boot: seen.Boot}
	}
}

// repeated handles the refusal of a node whose journal cannot be written. Nothing follows from it, unless the phase says so: an
// earlier order of the same step may have been carried out, and a later one may be when the journal works again. So the order is
// repeated until the node can say something that stays true. The operation's message says once what it waits for; after that
// repeated reports false.
func (t *transition) repeated(answer Answer) bool {
	now, ordered := t.kind.phases[t.Operation.Phase]
	why := answer.Error
	switch {
	case ordered && answer.Node != now.node(&t.Operation):
		return false // it was not asked
	case ordered && now.unjournalled != nil && now.unjournalled(t, why):
		return true
	case !ordered || now.explained || t.Operation.Message == why:
		return false
	}
	t.Operation.Message = why
	return true
}

// Settle decides an operation in phase Judging by what its nodes show: one look at each node, all of one round, by node ID.
// It reports false when that is not enough, and the nodes have to be asked again.
func Settle(op Operation, vm model.VM, seen map[string]Observation, at time.Time) (Next, bool) {
	if op.Phase != Judging || op.Result == Parked {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	for _, node := range []string{op.Source, op.Target} {
		if node == "" {
			continue
		}
		look, asked := seen[node]
		if !asked || look.State == "" || look.State == model.DomainUnknown {
			return Next{}, false
		}
		t.note("%s shows domain %s, epoch %d, job %t", t.name(node), look.State, look.Epoch, look.JobActive)
	}
	if t.kind.judge == nil {
		return Next{}, false // no operation of this kind enters the phase
	}
	decided := t.kind.judge(t, seen[op.Source], seen[op.Target])
	t.sawOn(t.VM.Holder, seen[t.VM.Holder])
	return t.Next, decided
}

type transition struct {
	Next
	kind  *kind
	at    time.Time
	since time.Time // when the record last changed
}

func newTransition(op Operation, vm model.VM, at time.Time) *transition {
	t := &transition{Next: Next{Operation: op, VM: vm}, kind: op.Kind.traits(), at: at, since: op.UpdatedAt}
	t.Operation.Excluded = slices.Clone(op.Excluded)
	t.Operation.Evidence = slices.Clone(op.Evidence)
	t.Operation.UpdatedAt = at
	return t
}

func (t *transition) apply(answer Answer) bool {
	now, ordered := t.kind.phases[t.Operation.Phase]
	return ordered && answer.Node == now.node(&t.Operation) && now.answered(t, answer)
}

// note keeps what a step was decided on.
func (t *transition) note(format string, args ...any) {
	t.Operation.Evidence = append(t.Operation.Evidence, fmt.Sprintf(format, args...))
}

func (t *transition) noteAnswer(answer Answer) {
	text := fmt.Sprintf("step %d: %s answered %s", answer.Step, t.name(answer.Node), answer.Outcome)
	if answer.Code == StaleEpoch { // no failure: the node has let this copy go already
		text = fmt.Sprintf("step %d: %s answered that it takes no more orders about this copy of the VM", answer.Step, t.name(answer.Node))
	}
	if answer.Seen.State != "" {
		text += fmt.Sprintf(", domain %s", answer.Seen.State)
	}
	if answer.Error != "" && answer.Code != StaleEpoch { // its words would read as a failure, also in an operation that is done
		text += ": " + answer.Error
	}
	t.note("%s", text)
}

// name is what people call the node.
func (t *transition) name(node string) string {
	switch {
	case node == t.Operation.Source && t.Operation.SourceName != "":
		return t.Operation.SourceName
	case node == t.Operation.Target && t.Operation.TargetName != "":
		return t.Operation.TargetName
	default:
		return node
	}
}

func (t *transition) enter(phase Phase) {
	if phase == Judging && t.Operation.resolved() {
		t.parkAgain("the end of the last order is in doubt") // no rule overrides a person's decision
		return
	}
	t.Operation.Phase = phase
	t.Operation.Step++
}

func (t *transition) end(result Result, message string) {
	ordered := t.Operation.Phase != Queued
	t.Operation.Phase = Ended
	t.Operation.Result = result
	t.Operation.Message = message
	t.Operation.EndedAt = t.at
	t.Operation.Spec, t.Operation.Volumes, t.Operation.Replaced = nil, nil, nil
	t.VM.Operation = ""
	if result == Done && t.kind.done != nil {
		t.kind.done(t)
	}
	if result == Failed && t.Operation.Created || result == Done && t.kind.forgets {
		t.DeleteVM, t.DeleteDisks = true, t.Operation.Disks
	}
	t.keepBound()
	if result == Failed && !ordered && t.Operation.Kind == Attach {
		unmade(t)
	}
}

// Arrived tells whether the VM is on the node that the operation has started or moved it to.
func (n *Next) Arrived() bool {
	op := &n.Operation
	return (op.Kind == Start || op.Kind == Migrate) && op.Target != "" && n.VM.Holder == op.Target && n.VM.Epoch == op.Epoch
}

// Bind takes the record of the VM with the node that alone has a disk of it, or with none.
func (n *Next) Bind(vm model.VM) {
	n.VM = vm
	n.keepBound()
}

// keepBound keeps a VM whose first start has failed and that is bound to a node: its guest may have written there, and who adds the VM anew
// might begin elsewhere with a file that does not have that.
func (n *Next) keepBound() {
	if n.Operation.Result == Failed && n.Operation.Created && n.DeleteVM && n.VM.Bound != "" {
		n.DeleteVM, n.DeleteDisks = false, nil
		n.Operation.Message += "; the VM is kept, because its guest may have written to a disk that its node alone has"
	}
}

// hold gives the VM to a node under the operation's epoch.
func (t *transition) hold(node string, epoch uint64) {
	t.VM.Holder, t.VM.LastNode, t.VM.Epoch = node, node, epoch
	t.VM.Condition, t.VM.Whereabouts = model.Condition{}, model.Whereabouts{}
}

// letGo takes the VM from its holder, with what was found out about it there.
func (t *transition) letGo() {
	t.VM.Holder, t.VM.Whereabouts.Boot, t.VM.Unwatched = "", "", t.VM.Epoch
}

// park locks the VM until a person has decided.
func (t *transition) park(why string) {
	t.Operation.Result = Parked
	t.Operation.Message = why
	t.VM.Condition = model.Condition{Kind: model.Parked, About: t.Operation.ID, Text: "parked: " + why}
	t.note("parked: %s", why)
}
