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
	t := newTransition(op, vm, at)
	switch {
	case answer.Outcome == OutcomeRefused && answer.Code == StaleTerm:
		return Next{}, false // the order came from an older leader; ours is on its way
	case answer.Outcome == OutcomeRefused && answer.Code == Journal:
		return t.Next, t.unjournalled(answer.Error)
	case !t.apply(answer):
		return Next{}, false
	}
	return t.Next, true
}

// unjournalled handles the refusal of a node whose journal cannot be written. Nothing follows from it: an earlier order of
// the same step may have been carried out, and a later one may be when the journal works again. So the order is repeated
// until the node can say something that stays true. The operation's message says once what it waits for; after that
// unjournalled reports false.
func (t *transition) unjournalled(why string) bool {
	switch op := &t.Operation; op.Phase {
	case Dispatched, Preparing, Copying, HandedOver:
		told := op.Message == why
		op.Message = why
		return !told
	default:
		return false // the message already says why
	}
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
	decided := true
	switch op.Kind {
	case Start:
		t.judgeStart(seen[op.Target])
	case Stop:
		t.judgeStop(seen[op.Source])
	case Migrate:
		decided = t.judgeMigration(seen[op.Source], seen[op.Target])
	}
	return t.Next, decided
}

type transition struct {
	Next
	at    time.Time
	since time.Time // when the record last changed
}

func newTransition(op Operation, vm model.VM, at time.Time) *transition {
	t := &transition{Next: Next{Operation: op, VM: vm}, at: at, since: op.UpdatedAt}
	t.Operation.Excluded = slices.Clone(op.Excluded)
	t.Operation.Evidence = slices.Clone(op.Evidence)
	t.Operation.UpdatedAt = at
	return t
}

func (t *transition) apply(answer Answer) bool {
	op := &t.Operation
	switch op.Phase {
	case Marking:
		return answer.Node == op.kept() && t.markAnswered(answer)
	case Dispatched:
		switch op.Kind {
		case Adopt:
			return answer.Node == op.Target && t.adoptAnswered(answer)
		case Release:
			return answer.Node == op.Source && t.releaseAnswered(answer)
		}
		if op.Kind == Stop {
			return answer.Node == op.Source && t.stopAnswered(answer)
		}
		return answer.Node == op.Target && t.startAnswered(answer)
	case Preparing:
		return answer.Node == op.Target && t.prepareAnswered(answer)
	case Copying:
		return answer.Node == op.Source && t.copyAnswered(answer)
	case HandedOver:
		return answer.Node == op.Target && t.resumeAnswered(answer)
	case Discarding:
		return answer.Node == op.Leftover && t.discardAnswered(answer)
	case Reverting:
		return answer.Node == op.Source && t.revertAnswered(answer)
	case Clearing:
		return answer.Node == op.Leftover && t.clearAnswered(answer)
	default:
		return false
	}
}

// note keeps what a step was decided on.
func (t *transition) note(format string, args ...any) {
	t.Operation.Evidence = append(t.Operation.Evidence, fmt.Sprintf(format, args...))
}

func (t *transition) noteAnswer(answer Answer) {
	text := fmt.Sprintf("step %d: %s answered %s", answer.Step, t.name(answer.Node), answer.Outcome)
	if answer.Seen.State != "" {
		text += fmt.Sprintf(", domain %s", answer.Seen.State)
	}
	if answer.Error != "" {
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
	t.Operation.Phase = Ended
	t.Operation.Result = result
	t.Operation.Message = message
	t.Operation.EndedAt = t.at
	t.Operation.Spec, t.Operation.Volumes, t.Operation.Replaced = nil, nil, nil
	t.VM.Operation = ""
	if result == Done && t.Operation.Kind == Migrate {
		t.VM.MovedAt = t.at
	}
	if result == Failed && t.Operation.Created || result == Done && (t.Operation.Kind == Delete || t.Operation.Kind == Release) {
		t.DeleteVM, t.DeleteDisks = true, t.Operation.Disks
	}
}

// hold gives the VM to a node under the operation's epoch.
func (t *transition) hold(node string, epoch uint64) {
	t.VM.Holder, t.VM.LastNode, t.VM.Epoch = node, node, epoch
	t.VM.Condition = model.Condition{}
}

func (t *transition) startAnswered(answer Answer) bool {
	t.noteAnswer(answer)
	switch answer.Outcome {
	case OutcomeDone:
		t.started()
	case OutcomeAmbiguous:
		t.enter(Judging)
	default:
		t.startFailed(answer.Code, answer.Error)
	}
	return true
}

func (t *transition) started() {
	t.hold(t.Operation.Target, t.Operation.Epoch)
	t.VM.StartedAt = t.at
	t.VM.Sticky = slices.Clone(t.Operation.Sticky) // replaces the earlier copies, even if there are none now
	if t.Operation.MakesHome {
		t.VM.Home = t.Operation.Target
	}
	t.VM.Desired = model.Running
	t.VM.CPU, t.VM.PassedCPU = t.Operation.CPU, t.Operation.PassedCPU
	t.made()
	t.end(Done, "")
}

// permanent names the failures that another node would only repeat.
func permanent(code ErrorCode) bool {
	return slices.Contains([]ErrorCode{InvalidXML, Exists, StaleEpoch}, code)
}

func (t *transition) startFailed(code ErrorCode, message string) {
	op := &t.Operation
	op.Excluded = append(op.Excluded, op.Target)
	switch {
	case permanent(code), op.Pinned != "", op.Cancel, op.Attempt >= MaxAttempts:
		t.notStarted()
		t.end(Failed, message)
	default:
		op.Message, op.Code = message, NoError
		op.Target, op.TargetName, op.Leftover, op.Volumes = "", "", "", nil
		t.enter(Placing)
	}
}

// notStarted is the state that a VM should have after a failed start. A VM that Berth itself restarts should still run.
func (t *transition) notStarted() {
	if !t.Operation.Restart || t.Operation.Cancel {
		t.VM.Desired = model.Stopped
	}
}

func (t *transition) stopAnswered(answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome == OutcomeDone:
		t.stopped()
	case answer.Outcome == OutcomeAmbiguous, answer.Code == StaleEpoch:
		t.enter(Judging) // the node has refused the VM before and may not have it any more
	default:
		t.end(Failed, answer.Error)
	}
	return true
}

func (t *transition) stopped() {
	t.VM.Desired, t.VM.Holder, t.VM.Condition = model.Stopped, "", model.Condition{}
	t.end(Done, "")
}

func (t *transition) copyAnswered(answer Answer) bool {
	t.noteAnswer(answer)
	t.Operation.Migration = answer.Migration
	gone := answer.Seen.State == model.DomainAbsent || answer.Seen.State == model.DomainShutoff
	switch {
	case answer.Outcome == OutcomeDone && gone:
		t.handOver()
		if answer.Seen.JobActive {
			// The guest has left, and the source's hypervisor is cleaning up. Until that ends, the VM cannot be migrated back.
			t.Operation.Leftover = t.Operation.Source
		}
	case answer.Outcome == OutcomeRefused:
		t.undo(answer.Error)
	case (answer.Outcome == OutcomeFailed || answer.Outcome == OutcomeCancelled) && answer.Seen.State == model.DomainRunning:
		t.Operation.Message = answer.Error
		t.Operation.Leftover = t.Operation.Target
		t.enter(Discarding)
	default:
		t.Operation.Message = answer.Error
		t.enter(Judging)
	}
	return true
}

// handOver makes the target the holder before the guest runs there: from here on the source may never resume it.
func (t *transition) handOver() {
	t.takeOver()
	t.enter(HandedOver)
}

// takeOver makes the target the holder, also of the disks that were copied.
func (t *transition) takeOver() {
	t.hold(t.Operation.Target, t.Operation.Epoch)
	if t.Operation.CopyStorage && t.VM.Home == t.Operation.Source && t.VM.Home != "" {
		t.VM.Home = t.Operation.Target
	}
	t.made()
	t.VM.MovedAt = t.at
}

func (t *transition) resumeAnswered(answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome == OutcomeDone:
		t.figures(answer.Migration)
		t.arrived()
	case answer.Outcome != OutcomeAmbiguous && answer.Seen.State == model.DomainAbsent:
		t.lost("the target could not resume it: " + answer.Error)
	default:
		t.Operation.Message = answer.Error
		t.enter(Judging)
	}
	return true
}

// figures completes the migration's figures: the target knows the downtime, and the records show the length of the hand-over.
func (t *transition) figures(ofTarget *MigrationStats) {
	known := t.Operation.Migration
	if ofTarget != nil {
		known = ofTarget
	}
	if known == nil {
		return
	}
	whole, handover := *known, t.at.Sub(t.since)
	whole.Handover = &handover
	t.Operation.Migration = &whole
}

// arrived ends a migration whose target runs the VM. If the source has a leftover, that is discarded first.
func (t *transition) arrived() {
	if t.Operation.Leftover == "" {
		t.moved()
		return
	}
	t.enter(Discarding)
}

func (t *transition) discardAnswered(answer Answer) bool {
	op := &t.Operation
	gone := answer.Outcome == OutcomeDone || t.shut(answer)
	switch {
	case gone && op.resolved():
		t.noteAnswer(answer)
		t.closeNext(op.Leftover)
	case gone && op.Revert:
		t.noteAnswer(answer)
		t.enter(Reverting)
	case gone:
		t.noteAnswer(answer)
		t.discarded()
	case answer.Seen.State == model.DomainRunning:
		t.noteAnswer(answer)
		t.enter(Judging) // what looked like a leftover runs
	default:
		return false // asked again until it is gone
	}
	return true
}

// shut tells that a node has nothing to discard and refuses the epoch: an earlier discard of this operation did that, and the
// same question came again after another look.
func (t *transition) shut(answer Answer) bool {
	switch seen := answer.Seen; {
	case answer.Code != StaleEpoch, seen.State == "", seen.State == model.DomainUnknown:
		return false
	case !seen.State.Holds():
		return !seen.JobActive // otherwise the guest has left and the node's hypervisor is cleaning up
	default:
		return seen.Epoch != t.Operation.leftoverEpoch()
	}
}

func (t *transition) discarded() {
	switch {
	case t.Operation.Leftover == t.Operation.Source:
		t.moved()
	case t.VM.Holder == "":
		t.lost(t.Operation.Message)
	default:
		t.end(Failed, t.Operation.Message)
	}
}

func (t *transition) revertAnswered(answer Answer) bool {
	t.noteAnswer(answer)
	if answer.Outcome == OutcomeDone {
		t.end(Failed, t.Operation.Message)
	} else {
		t.enter(Judging)
	}
	return true
}

func (t *transition) judgeStart(seen Observation) {
	switch {
	case seen.State.Holds() && seen.Epoch == t.Operation.Epoch:
		t.started()
	case !seen.State.Holds():
		t.startUndone(NoError, "the start ended unseen and the node does not run it")
	default:
		t.startUndone(Exists, fmt.Sprintf("the node runs a domain of this UUID under epoch %d", seen.Epoch))
	}
}

// judgeStop orders a stop again when nobody saw its end: a hypervisor that hung could still carry it out after the operation
// has reported failure.
func (t *transition) judgeStop(seen Observation) {
	op := &t.Operation
	switch {
	case !seen.State.Holds():
		t.stopped()
	case op.Attempt < MaxAttempts && !op.Cancel && seen.Epoch == t.VM.Epoch:
		op.Attempt++
		op.Message = "the node still shows it " + string(seen.State) + ": it is asked to stop it again"
		t.enter(Dispatched)
	default:
		t.end(Failed, "the node still shows it "+string(seen.State))
	}
}

func (t *transition) judgeMigration(source, target Observation) bool {
	op := &t.Operation
	handed := t.VM.Holder == op.Target // the source had let the guest go before, so it does not matter how the source ended
	source.Anew = !handed && op.SourceBoot != "" && source.Boot != op.SourceBoot
	source.Ended = !handed && source.Ended
	verdict := Judge(source, target, op.Epoch)
	t.note("verdict: %s", verdict)
	op.Leftover, op.Revert = "", false // what an earlier round took for a leftover may be the guest
	switch verdict {
	case RolledBack:
		if t.VM.Holder != op.Source {
			// The source had been reported gone: somebody started the VM there by hand.
			t.park("the source runs it again after it was handed over")
			return true
		}
		op.Leftover = op.Target
		t.enter(Discarding)
	case Committed:
		if source.State.Holds() {
			op.Leftover = op.Source
		}
		t.handOver()
	case RevertSource:
		if t.VM.Holder != op.Source {
			t.park("the source shows a paused copy after it was handed over")
			return true
		}
		op.Leftover, op.Revert = op.Target, true
		t.enter(Discarding)
	case LostBoth:
		t.lost("neither node shows it any more")
	case EndedThere:
		t.discardOld("the guest ran on at " + t.name(op.Source) + " and ended there")
	case SourceDied:
		t.sourceDied()
	case DoubleRunning:
		t.park("both nodes run it")
	default:
		return false
	}
	return true
}

// sourceDied assumes that the source's host failed before it could say how the migration ended. Only a person may know
// whether the guest ran on there. A VM that should be restarted after such an end is restarted, because its disks have all
// that there is.
func (t *transition) sourceDied() {
	const why = "the source's host went down before the end was told"
	if t.VM.HA {
		t.discardOld(why)
	} else {
		t.park(why + ": the copy on the target may be older than what the guest did since")
	}
}

// discardOld ends a migration whose VM runs nowhere, once the target's old copy is gone.
func (t *transition) discardOld(why string) {
	op := &t.Operation
	t.VM.Holder, op.Leftover, op.Message = "", op.Target, why
	t.enter(Discarding)
}

// park locks the VM until a person has decided.
func (t *transition) park(why string) {
	t.Operation.Result = Parked
	t.Operation.Message = why
	t.VM.Condition = model.Condition{Kind: model.Parked, About: t.Operation.ID, Text: "parked: " + why}
	t.note("parked: %s", why)
}
