package operation

import (
	"cmp"
	"fmt"
	"time"

	"berth/coordinator/model"
)

// kindMigrate moves a running VM to another node: the source copies, then the target resumes.
var kindMigrate = kind{
	name: Migrate,
	phases: map[Phase]phase{
		Preparing: {
			node: atTarget, order: prepareOrder, answered: prepareAnswered, overdue: prepareOverdue, cancels: true,
			suspect: prepareSuspect, unjournalled: prepareUnjournalled,
		},
		Copying: {node: atSource, order: copyOrder, answered: copyAnswered, cancels: true, suspect: copySuspect},
		HandedOver: {
			node: atTarget, order: resumeOrder, answered: resumeAnswered, suspect: resumeSuspect,
			off: func(t *transition) bool {
				t.lostWithTarget()
				return resumeAnswered(t, notResumed(t))
			},
		},
		Discarding: {
			node: atLeftover, order: discardOrder, answered: discardAnswered, off: discardOff, overdue: discardOverdue,
			soon: true, explained: true,
		},
		Reverting: {
			node: atSource, answered: revertAnswered, explained: true,
			order: func(op *Operation, _ *model.VM) Order { return Order{Action: ActResume, Epoch: op.SourceEpoch} },
		},
		Marking: {node: atKept, order: markOrder, answered: markAnswered, overdue: markOverdue, explained: true},
		Clearing: {
			node: atLeftover, order: clearLeftover, answered: clearAnswered, off: clearOff, overdue: clearOverdue,
			soon: true, explained: true,
		},
	},
	judge: judgeMigration,
	cleared: func(t *transition) {
		if op := &t.Operation; op.Leftover == op.Source {
			t.end(Done, "")
		} else {
			t.end(Failed, op.Message)
		}
	},
	done:      func(t *transition) { t.VM.MovedAt = t.at },
	reserves:  true,
	brings:    true,
	meanwhile: Migrating,
	begun: func(op *Operation) string {
		if op.CopyStorage {
			return fmt.Sprintf("migrates from %s to %s with its disks", op.SourceName, op.TargetName)
		}
		return fmt.Sprintf("migrates from %s to %s", op.SourceName, op.TargetName)
	},
	doing: func(op *Operation) string {
		return fmt.Sprintf("migrating from %s to %s", op.SourceName, op.TargetName)
	},
	ended: migrated,
}

func migrated(op *Operation) (event, text string) {
	text = fmt.Sprintf("runs on %s, from %s, after %s", op.TargetName, op.SourceName, op.EndedAt.Sub(op.CreatedAt).Round(time.Millisecond))
	if op.Migration != nil && op.Migration.Downtime != nil {
		text += fmt.Sprintf("; downtime %s", op.Migration.Downtime.Round(time.Millisecond))
	}
	return "vm.migrated", text
}

func prepareOrder(op *Operation, vm *model.VM) Order {
	return Order{Action: ActPrepare, Epoch: op.Epoch, Spec: vm.Spec, Volumes: op.Volumes}
}

func copyOrder(op *Operation, vm *model.VM) Order {
	return Order{
		Action: ActMigrate, Epoch: vm.Epoch, Spec: vm.Spec,
		TargetEpoch: op.Epoch, TargetNode: op.Target, TargetURI: op.TargetURI, TargetHost: op.TargetHost,
		Bandwidth: op.Bandwidth, Deadline: op.Deadline,
		CopyStorage: op.CopyStorage, Replaced: op.Replaced, Volumes: op.Volumes,
		GivenUp: op.Cancel || op.GivenUp != "",
	}
}

func resumeOrder(op *Operation, _ *model.VM) Order { return Order{Action: ActResume, Epoch: op.Epoch} }

// clearLeftover removes the volumes of the losing side.
func clearLeftover(op *Operation, _ *model.VM) Order {
	return Order{Action: ActClear, Epoch: op.leftoverEpoch(), Volumes: op.cleared()}
}

func clearOverdue(t *transition, waited time.Duration) bool {
	late := waited >= DiscardPatience
	if late {
		t.clearedInVain(silent)
	}
	return late
}

func prepareOverdue(t *transition, waited time.Duration) bool {
	op := &t.Operation
	switch {
	case len(op.Volumes) == 0 && waited >= TicketPatience:
		t.end(Failed, fmt.Sprintf("%s did not promise to resume it within %s", t.name(op.Target), TicketPatience))
	case len(op.Volumes) > 0 && op.Cancel && waited >= DiscardPatience:
		t.note("%s %s: %s", t.name(op.Target), silent, stay(op.Volumes))
		t.end(Failed, "cancelled while "+t.name(op.Target)+" made volumes")
	default:
		return false
	}
	return true
}

// notResumed is the answer of a target that is off.
func notResumed(t *transition) Answer {
	node := t.Operation.Target
	return Answer{
		Node: node, Step: t.Operation.Step, Outcome: OutcomeFailed, Error: t.name(node) + " " + off, Seen: Observation{State: model.DomainAbsent},
	}
}

func copyAnswered(t *transition, answer Answer) bool {
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
		t.Operation.Message = cmp.Or(t.Operation.GivenUp, answer.Error)
		t.Operation.Leftover = t.Operation.Target
		if answer.Code == Unsafe {
			t.Operation.Code = Unsafe
		}
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
	t.VM.Copies = nil
	t.hold(t.Operation.Target, t.Operation.Epoch)
	if t.Operation.CopyStorage && t.VM.Home == t.Operation.Source && t.VM.Home != "" {
		t.VM.Home = t.Operation.Target
	}
	t.made()
	t.VM.MovedAt = t.at
}

func resumeAnswered(t *transition, answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome == OutcomeDone && answer.Repeated && len(t.Operation.Replaced) > 0:
		// It ran there, and its machine may have died since, with the disks. Those of the source are removed once it is seen to run.
		t.figures(answer.Migration)
		t.enter(Judging)
	case answer.Outcome == OutcomeDone:
		t.figures(answer.Migration)
		t.arrived()
	case answer.Outcome != OutcomeAmbiguous && answer.Seen.State == model.DomainAbsent:
		if t.Operation.targetAnew(answer.Seen) {
			t.lostWithTarget()
		}
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

func prepareAnswered(t *transition, answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome == OutcomeDone && t.Operation.Cancel:
		t.undo("cancelled before the copy began")
	case answer.Outcome == OutcomeDone:
		t.enter(Copying)
	case answer.Outcome == OutcomeAmbiguous:
		t.undo(answer.Error)
	default:
		t.end(Failed, answer.Error)
	}
	return true
}

// undo fails a migration that has not begun to copy.
func (t *transition) undo(why string) {
	if len(t.Operation.Volumes) == 0 {
		t.end(Failed, why)
		return
	}
	t.Operation.Message = why
	t.clear(t.Operation.Target)
}

// moved ends a migration whose target runs the VM. The volumes on its source are not needed any more.
func (t *transition) moved() {
	if len(t.Operation.Replaced) > 0 {
		t.clear(t.Operation.Source)
		return
	}
	t.end(Done, "")
}

// lost ends a migration after which neither node has the VM. The volumes of both nodes stay: its disks may be gone with their machine.
func (t *transition) lost(why string) {
	op := &t.Operation
	had := t.VM.Holder == op.Target
	t.letGo()
	message := "lost during a migration: " + why
	t.VM.Condition = model.Condition{Kind: model.LostMoving, About: op.ID, Text: message}
	switch {
	case had && len(op.Replaced) > 0:
		message += "; " + t.leaveReplaced()
		t.VM.Condition.Text = message
	case len(op.Volumes) > 0:
		t.leaveCopies(false)
		message += "; " + t.copiesLeft()
		t.VM.Condition.Text = message
	}
	t.end(Failed, message)
}
