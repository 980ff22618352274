package operation

import (
	"slices"

	"berth/coordinator/model"
)

// Verdict says who has the VM after a migration whose end nobody saw.
type Verdict string

// The verdicts. Only Committed moves the VM to the target.
const (
	RolledBack    Verdict = "rolled back"         // the source has it; the target's leftover goes
	Committed     Verdict = "committed"           // the target has it; it is resumed, the source's leftover goes
	RevertSource  Verdict = "revert"              // both still hold it: the target's copy is removed, then the source resumes
	StillCopying  Verdict = "still copying"       // the job runs on; wait
	LostBoth      Verdict = "lost"                // neither has it
	EndedThere    Verdict = "ended on the source" // the guest ran on there, so the target's copy is older
	SourceDied    Verdict = "the source died"     // the guest may have run on there, so the target's copy may be older
	Unaccounted   Verdict = "unaccounted for"     // the same, because nobody has seen how it went
	DoubleRunning Verdict = "running on both"     // a person has to decide
	CannotTell    Verdict = "not enough evidence" // ask again
)

// Judge decides from what both nodes show after the job ended or its end went unseen (FAULTS.md, "The verdict of a
// migration"). It uses no job statistics and no return code, only what is there. A case that the table does not have is
// CannotTell, because a wrong guess runs a VM twice or destroys it. Epoch is the epoch that the migration gives to the
// target.
//
// A source that shows nothing has not always let the guest go. When the target's reply is lost, libvirt lets the guest run on
// at the source, where it writes to its disks. Then it may end there, or the host may fail.
func Judge(source, target Observation, epoch uint64) Verdict {
	gone := source.State == model.DomainAbsent || source.State == model.DomainShutoff
	absent := target.State == model.DomainAbsent || target.State == model.DomainShutoff
	paused := target.State == model.DomainPaused || target.State == model.DomainPausedMigration
	// A copy on the target that is not of this migration proves nothing about it.
	if !absent && target.State != model.DomainUnknown && target.Epoch != epoch {
		return CannotTell
	}
	switch {
	case source.State == model.DomainRunning && target.State == model.DomainRunning:
		return DoubleRunning
	case source.JobActive:
		return StillCopying
	case source.State == model.DomainRunning, source.State == model.DomainPaused:
		if absent || paused {
			return RolledBack
		}
	case source.State == model.DomainPausedMigration && target.State == model.DomainRunning:
		return Committed
	case source.State == model.DomainPausedMigration && (paused || absent):
		return RevertSource
	case gone && paused && source.Ended:
		return EndedThere
	case gone && paused && source.Anew:
		return SourceDied
	case gone && paused && target.JobActive:
		return CannotTell // it may lack memory that only the source had: libvirt ends the job, and what is left tells
	case gone && paused && source.Unseen:
		return Unaccounted
	case gone && (paused || target.State == model.DomainRunning):
		return Committed
	case gone && absent:
		return LostBoth
	}
	return CannotTell
}

// movedByHand tells whether somebody else has moved the VM to the target before the migration began: the copy there still has the
// source's epoch, which a migration by Berth replaces.
func movedByHand(op *Operation, source, target Observation) bool {
	gone := source.State == model.DomainAbsent || source.State == model.DomainShutoff
	return gone && target.State.Lives() && !target.JobActive && target.Epoch == op.SourceEpoch && target.Epoch != op.Epoch
}

// isLeft tells whether a node shows nothing but a paused copy that an earlier migration had to leave there. It is discarded once no
// operation works on the VM, and until then the VM is not started, so no operation may wait for it to go.
func (t *transition) isLeft(node string, seen Observation) bool {
	paused := seen.State == model.DomainPaused || seen.State == model.DomainPausedMigration
	return paused && seen.Epoch != t.Operation.Epoch && slices.Contains(t.VM.Discards, model.Discard{Node: node, Epoch: seen.Epoch})
}

func judgeMigration(t *transition, source, target Observation) bool {
	op := &t.Operation
	handed := t.VM.Holder == op.Target // the source had let the guest go before, so it does not matter how the source ended
	source.Anew = !handed && op.SourceBoot != "" && source.Boot != op.SourceBoot
	source.Ended, source.Unseen = !handed && source.Ended, !handed && source.Unseen
	if !handed && movedByHand(op, source, target) {
		t.undo("somebody else has moved it to " + t.name(op.Target) + " meanwhile")
		return true
	}
	if t.isLeft(op.Target, target) {
		target.State, target.JobActive = model.DomainAbsent, false
	}
	verdict := Judge(source, target, op.Epoch)
	t.note("verdict: %s", verdict)
	switch {
	case source.Anew && (verdict == SourceDied || verdict == LostBoth):
		came, fell := source.Came, source.Fell
		if came.IsZero() || fell.IsZero() { // two times by one clock can be compared, and no others
			came, fell = t.VM.CameAt(), t.at
		}
		t.VM.Lose(op.SourceName, came, fell)
	case handed && verdict == LostBoth && op.targetAnew(target):
		t.lostWithTarget()
	}
	op.Leftover, op.Revert = "", false // what an earlier round took for a leftover may be the guest
	t.VM.Copies = nil
	whole := !target.JobActive
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
		// What ended on the target before it was handed over is another stay of the VM there.
		if ended := handed && (target.Ended || target.Anew) || !handed && (source.Ended || source.Anew); !ended {
			t.VM.Whereabouts.Missing = t.at // somebody may have moved it on before the nodes were asked
		}
		t.lost("neither node shows it any more")
	case EndedThere:
		t.discardOld("the guest ran on at "+t.name(op.Source)+" and ended there", whole)
	case SourceDied:
		t.sourceDied(whole)
	case Unaccounted:
		parkCopied(t, whole, "the agent or libvirt on "+t.name(op.Source)+" was away when the guest went from there, and nothing tells how: "+
			"it may have run on and ended, and then the copy on "+t.name(op.Target)+" is older than its disks")
	case DoubleRunning:
		parkCopied(t, whole, "both nodes run it")
	default:
		return false
	}
	return true
}

// sourceDied assumes that the source's host failed before it could say how the migration ended. Only a person may know
// whether the guest ran on there. A VM that should be restarted after such an end is restarted, because its disks have all
// that there is.
func (t *transition) sourceDied(whole bool) {
	const why = "the source's host went down before the end was told"
	if t.VM.Guarded() {
		t.discardOld(why, whole)
	} else {
		parkCopied(t, whole, why+": the copy on the target may be older than what the guest did since")
	}
}

// discardOld ends a migration whose VM runs nowhere, once the target's old copy is gone. Copies of disks stay there.
func (t *transition) discardOld(why string, whole bool) {
	op := &t.Operation
	t.leaveCopies(whole)
	op.Leftover, op.Message = op.Target, why
	t.letGo()
	t.enter(Discarding)
}
