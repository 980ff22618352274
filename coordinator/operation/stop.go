package operation

import "berth/coordinator/model"

// kindStop shuts a VM down where it runs.
var kindStop = kind{
	name: Stop,
	phases: map[Phase]phase{
		Dispatched: {node: atSource, order: stopOrder, answered: stopAnswered, unbegun: takenBack, dated: true},
	},
	judge: judgeStop,
	stops: true,
	bound: Bound{
		Why: "a stop cannot be taken back once the guest was asked", NextStep: "start the VM again when it has stopped",
	},
	meanwhile: Stopping,
	begun:     func(op *Operation) string { return op.later("stop", "stops on "+op.SourceName) },
	doing: func(op *Operation) string {
		if op.SourceName == "" {
			return "stopping" // no node had it any more
		}
		return "stopping on " + op.SourceName
	},
	ended: func(op *Operation) (event, text string) { return "vm.stopped", "stopped on " + op.SourceName },
}

func stopOrder(op *Operation, vm *model.VM) Order {
	return Order{Action: ActStop, Epoch: vm.Epoch, Force: op.Force, Grace: op.Grace}
}

func stopAnswered(t *transition, answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome == OutcomeDone:
		t.stopped(answer.Node, answer.Seen, !answer.Seen.Missing)
	case answer.Outcome == OutcomeAmbiguous, answer.Code == StaleEpoch:
		t.enter(Judging) // the node has refused the VM before and may not have it any more
	default:
		t.end(Failed, answer.Error)
	}
	return true
}

// stopped ends a stop whose node does not have the VM. If nobody has seen its end there, somebody may have moved it before.
func (t *transition) stopped(node string, seen Observation, ended bool) {
	message, was := "", t.VM.Whereabouts
	booted := seen.Anew || was.Boot != "" && seen.Boot != "" && was.Boot != seen.Boot
	t.VM.Whereabouts = model.Whereabouts{}
	if !ended {
		t.VM.Unwatched = t.VM.Epoch
	}
	if !ended && (!booted || !was.Missing.IsZero()) { // a boot ends only what had not left before
		t.VM.Whereabouts.Missing = t.at
		message = "it was not on " + t.name(node) + " any more, and nobody has seen how it left: another node may run it"
	}
	t.VM.Desired, t.VM.Holder, t.VM.Condition, t.VM.Paused = model.Stopped, "", model.Condition{}, model.Stand{}
	t.end(Done, message)
}

// judgeStop orders a stop again when nobody saw its end: a hypervisor that hung could still carry it out after the operation
// has reported failure.
func judgeStop(t *transition, seen, _ Observation) bool {
	op := &t.Operation
	switch {
	case !seen.State.Holds():
		t.stopped(op.Source, seen, seen.Ended)
	case op.Attempt < MaxAttempts && !op.Cancel && seen.Epoch == t.VM.Epoch:
		op.Attempt++
		op.GivenUp = "" // it is heard
		op.Message = "the node still shows it " + string(seen.State) + ": it is asked to stop it again"
		t.enter(Dispatched)
	default:
		t.end(Failed, "the node still shows it "+string(seen.State))
	}
	return true
}
