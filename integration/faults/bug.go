package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth/agent/hypervisor"
	"berth/agent/jobs"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Bug is a defect that is planted into a run, to show that the rules would find it.
type Bug string

// The bugs that can be planted.
const (
	None             Bug = ""
	JournalUnheeded  Bug = "what the journal has of answers and epochs is not heeded"
	IntentLost       Bug = "no intent is journalled"
	SilenceIsGone    Bug = "a daemon that does not answer runs nothing"
	ResumesBlindly   Bug = "the source resumes when its migration has failed"
	DoubtIsFailure   Bug = "a start in doubt counts as failed"
	DoubtIsRollBack  Bug = "a migration in doubt counts as rolled back"
	RefusalIsProof   Bug = "an order that a broken journal has refused counts as not carried out"
	RevisionsIgnored Bug = "a step is stored whatever has happened to its records"

	SilenceIsDeath     Bug = "a VM of a silent node is restarted without proof"
	FencedUnasked      Bug = "a node counts as off when its device is to be asked"
	FailureIsProof     Bug = "a device that gives no answer has proven that the node is off"
	ProofOutlivesBoot  Bug = "the answer of a device is believed when the node has booted anew"
	ManySilent         Bug = "a node is fenced though many are silent"
	EarlierCallIgnored Bug = "a new leader does not wait for the calls of the one before"
	AsksLate           Bug = "a leader that stood still asks the device then"
	WatchdogUnwaited   Bug = "a watchdog has fired as soon as its node is silent"
	ReturnUnnoticed    Bug = "a node that has booted anew does not count again"
)

// Bugs are those that any site can show, and FenceBugs those that only one can where nodes are fenced.
var Bugs = []Bug{
	JournalUnheeded, IntentLost, SilenceIsGone, ResumesBlindly, DoubtIsFailure, DoubtIsRollBack, RefusalIsProof, RevisionsIgnored,
}

// FenceBugs are those of fencing and restarting.
var FenceBugs = []Bug{
	SilenceIsDeath, FencedUnasked, FailureIsProof, ProofOutlivesBoot, ManySilent, EarlierCallIgnored, AsksLate, WatchdogUnwaited,
	ReturnUnnoticed,
}

// heard lets an answer pass on its way to the driver.
func (w *World) heard(answer operation.Answer) operation.Answer {
	isMove := strings.HasPrefix(answer.Operation, "migrate")
	switch doubt := answer.Outcome == operation.OutcomeAmbiguous; {
	case w.bug == DoubtIsFailure && doubt && !isMove:
		answer.Outcome, answer.Code = operation.OutcomeFailed, operation.Internal
	case w.bug == DoubtIsRollBack && doubt && isMove:
		answer.Outcome, answer.Seen.State = operation.OutcomeFailed, model.DomainRunning
	case w.bug == RefusalIsProof && answer.Code == operation.Journal:
		answer.Code = operation.Internal
	}
	return answer
}

func (w *World) breakable(l *libvirt) hypervisor.Hypervisor {
	switch w.bug {
	case SilenceIsGone, ResumesBlindly:
		return broken{l}
	default:
		return l
	}
}

// broken is a libvirt that an agent misreads.
type broken struct{ *libvirt }

// Lookup implements hypervisor.Hypervisor.
func (b broken) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	d, err := b.libvirt.Lookup(ctx, uuid)
	if b.host.world.bug == SilenceIsGone && errors.Is(err, hypervisor.ErrUnavailable) {
		err = fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	}
	return d, err
}

// Migrate implements hypervisor.Hypervisor.
func (b broken) Migrate(ctx context.Context, uuid string, options hypervisor.MigrateOptions) error {
	err := b.libvirt.Migrate(ctx, uuid, options)
	h := b.host
	if d := h.domains[uuid]; h.world.bug == ResumesBlindly && err != nil && d != nil && d.State == hypervisor.PausedMigration && h.up {
		h.set(d, hypervisor.Running, "unpaused")
	}
	return err
}

func (w *World) storage(j journal) jobs.Storage {
	switch w.bug {
	case JournalUnheeded, IntentLost:
		return forgetful{j}
	default:
		return j
	}
}

// forgetful is a journal that an agent does not heed.
type forgetful struct{ journal }

// View implements jobs.Storage.
func (f forgetful) View(read func(jobs.Tx) error) error {
	return f.journal.View(func(t jobs.Tx) error { return read(forgetfulTx{t, f.world.bug}) })
}

// Update implements jobs.Storage.
func (f forgetful) Update(change func(jobs.Tx) error) error {
	return f.journal.Update(func(t jobs.Tx) error { return change(forgetfulTx{t, f.world.bug}) })
}

type forgetfulTx struct {
	jobs.Tx
	bug Bug
}

// Bucket implements jobs.Tx.
func (t forgetfulTx) Bucket(name string) jobs.Bucket {
	switch {
	case t.bug == JournalUnheeded && (name == "epochs" || name == "answers"), t.bug == IntentLost && name == "intents":
		return empty{t.Tx.Bucket(name)}
	default:
		return t.Tx.Bucket(name)
	}
}

// empty is a bucket that never has anything.
type empty struct{ jobs.Bucket }

// Get implements jobs.Bucket.
func (empty) Get([]byte) []byte { return nil }

// Put implements jobs.Bucket.
func (empty) Put([]byte, []byte) error { return nil }

// ForEach implements jobs.Bucket.
func (empty) ForEach(func(key, value []byte) error) error { return nil }

// guard are the expectations of a command, as the state machine gets them.
func (w *World) guard(command *state.Command) {
	if w.bug != RevisionsIgnored {
		return
	}
	snapshot := w.store.Snapshot()
	for i := range command.Expect {
		expected := &command.Expect[i]
		switch op, known := snapshot.Operation(expected.ID); {
		case expected.Table == state.Operations && known:
			expected.Revision = op.Revision
		case expected.Table == state.VMs:
			vm, _ := snapshot.VM(expected.ID)
			expected.Revision = vm.Revision
		case expected.Table == state.Nodes:
			node, _ := snapshot.Node(expected.ID)
			expected.Revision = node.Revision
		}
	}
}
