package plant

import (
	"strings"

	"berth/agent/hypervisor"
	"berth/agent/jobs"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
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
	OrphanIsGone     Bug = "a guest that libvirt does not list is gone, whatever processes there are"

	NoTicket        Bug = "a migration begins without a ticket of its target"
	TicketUnheeded  Bug = "a node with a ticket resumes nothing while its journal takes no entry"
	TargetUnwatched Bug = "nobody looks whether the target of a migration has turned suspect"

	CopiesDeleted Bug = "the copies of disks go with the copy of a guest that is lost"
	CopiesUnread  Bug = "the copies of disks go though nobody has seen the disks"

	SilenceIsDeath     Bug = "a VM of a silent node is restarted without proof"
	FencedUnasked      Bug = "a node counts as off when its device is to be asked"
	FailureIsProof     Bug = "a device that gives no answer has proven that the node is off"
	ProofOutlivesBoot  Bug = "the answer of a device is believed when the node has booted anew"
	ManySilent         Bug = "a node is fenced though many are silent"
	EarlierCallIgnored Bug = "a new leader does not wait for the calls of the one before"
	StampsKept         Bug = "times that have not come yet are left in records"
	BelievesTheDevice  Bug = "a device is believed though another machine fell silent at that moment"
	VetoUnasked        Bug = "a device is believed though other nodes reach the machine"
	DisarmedUnsaid     Bug = "a watchdog is disarmed while the record says that it would fire"
	ArmedForNobody     Bug = "watchdogs are armed on nodes that no VM with HA runs on"
	LeftOff            Bug = "a VM without HA stays off when its host is back"
	StorageFails       Bug = "a VM is given up whose storage is late"
	RackFenced         Bug = "the hosts of a dark rack of 40 % are fenced without a word"
	LossesForgotten    Bug = "nobody counts the hosts that were lost with a VM"
	AsksLate           Bug = "a leader that stood still asks the device then"
	WatchdogUnwaited   Bug = "a watchdog has fired as soon as its node is silent"
	OrphanUnseen       Bug = "no node looks for the processes of guests that its libvirt does not list"
	SavedIsGone        Bug = "a guest whose memory libvirt keeps is gone"
	VirtualWatchdog    Bug = "the watchdog of a virtual host counts"
	GateLeftOut        Bug = "an agent of the release before is given every order, and its watchdog counts"
	RemovedSentAway    Bug = "the agent of a node that was removed is sent away, whatever it has"
	SickAtOnce         Bug = "a sick node is fenced long before it is sick for as long as it may be"
	CloneBelieved      Bug = "a second machine with a node's identity is believed"
	ReturnUnnoticed    Bug = "a node that has booted anew does not count again"
	PausedRuns         Bug = "whoever has paused a guest, it is let run when there is room"
	DiskUnasked        Bug = "nobody asks whether another guest has a disk of a VM that is started"
	BoundMoves         Bug = "a guest is moved that libvirt does not migrate"
	JobUnasked         Bug = "a guest is stopped while somebody's backup holds it"
	WrongFile          Bug = "a VM goes where another file has the name of its disk"
	OneLiarBindsAll    Bug = "one node with another pool sets all nodes apart"
	LocalMoves         Bug = "a VM with a file of its node goes elsewhere"
	DriftUnfollowed    Bug = "nobody writes down what people have changed of a guest"
	SizesUnheeded      Bug = "guests count for what their records say, however large they are"
	LastRunUnheeded    Bug = "what a node tells of what a guest ran with is not heeded once that has ended"
	EditsUnwritten     Bug = "a VM is started with its record, whatever it ran with last"
	DiskSizeUnasked    Bug = "a disk is copied by the size of its record, whatever its guest has"
	RestoredRuns       Bug = "after a restore a VM is restarted that people had stopped"
)

// Bugs are those that any site can show, and FenceBugs those that only one can where nodes are fenced.
var Bugs = []Bug{
	JournalUnheeded, IntentLost, SilenceIsGone, ResumesBlindly, DoubtIsFailure, DoubtIsRollBack, RefusalIsProof, RevisionsIgnored,
	OrphanIsGone,
	NoTicket, TicketUnheeded,
}

// FenceBugs are those of fencing and restarting.
var FenceBugs = []Bug{
	SilenceIsDeath,
	FencedUnasked,
	FailureIsProof,
	ProofOutlivesBoot,
	ManySilent,
	EarlierCallIgnored,
	AsksLate,
	WatchdogUnwaited,
	ReturnUnnoticed,
	BelievesTheDevice,
	VetoUnasked,
	DisarmedUnsaid,
	ArmedForNobody,
	OrphanUnseen,
	LossesForgotten,
	RackFenced,
	LeftOff,
	StorageFails,
	CloneBelieved,
	VirtualWatchdog,
	SavedIsGone,
	GateLeftOut,
	RemovedSentAway,
	SickAtOnce,
	StampsKept,
	PausedRuns, RestoredRuns, DiskUnasked,
	CopiesDeleted, CopiesUnread, TargetUnwatched,
	DriftUnfollowed, LastRunUnheeded, EditsUnwritten, SizesUnheeded, DiskSizeUnasked,
	BoundMoves, JobUnasked, WrongFile, OneLiarBindsAll, LocalMoves,
}

// Heard lets an answer pass on its way to the driver.
func (b Bug) Heard(answer operation.Answer) operation.Answer {
	isMove := strings.HasPrefix(answer.Operation, "migrate")
	switch doubt := answer.Outcome == operation.OutcomeAmbiguous; {
	case b == DoubtIsFailure && doubt && !isMove:
		answer.Outcome, answer.Code = operation.OutcomeFailed, operation.Internal
	case b == DoubtIsRollBack && doubt && isMove:
		answer.Outcome, answer.Seen.State = operation.OutcomeFailed, model.DomainRunning
	case b == RefusalIsProof && answer.Code == operation.Journal:
		answer.Code = operation.Internal
	}
	return answer
}

// Misread is a libvirt as an agent reads it.
func (b Bug) Misread(l *machine.Libvirt) hypervisor.Hypervisor {
	switch b {
	case SilenceIsGone, ResumesBlindly, OrphanIsGone, OrphanUnseen:
		return Libvirt{
			Libvirt: l, SilenceIsGone: b == SilenceIsGone, NoProcesses: b != ResumesBlindly, ResumesBlindly: b == ResumesBlindly,
		}
	default:
		return l
	}
}

// Forget is a journal as an agent heeds it.
func (b Bug) Forget(j machine.Journal) jobs.Storage {
	switch b {
	case JournalUnheeded:
		return Journal{Journal: j, Empty: []string{"epochs", "answers"}}
	case IntentLost:
		return Journal{Journal: j, Empty: []string{"intents"}}
	case TicketUnheeded:
		return Journal{Journal: j, Unread: []string{"tickets"}}
	default:
		return j
	}
}

// Orders changes what nodes are told to do.
func (b Bug) Orders(op *operation.Operation, orders []operation.Order) []operation.Order {
	for i := range orders {
		if b == CopiesDeleted && orders[i].Action == operation.ActDiscard && op.Leftover == op.Target {
			orders[i].Volumes = op.Volumes
		}
		if b == EditsUnwritten && orders[i].Action == operation.ActStart {
			orders[i].Edits = nil
		}
	}
	return orders
}

// Begin changes a migration before it begins.
func (b Bug) Begin(op *operation.Operation) {
	if b == NoTicket {
		op.Phase = operation.Copying
	}
}

// Expect changes the expectations of a command before the state machine gets them.
func (b Bug) Expect(command *state.Command, snapshot *state.Snapshot) {
	if b != RevisionsIgnored {
		return
	}
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
