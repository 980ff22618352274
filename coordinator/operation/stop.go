package operation

import "berth/coordinator/model"

// kindStop shuts a VM down where it runs.
var kindStop = kind{
	name:   Stop,
	phases: map[Phase]phase{Dispatched: {node: atSource, order: stopOrder, answered: stopAnswered}},
	judge:  judgeStop,
	stops:  true,
	bound: Bound{
		Why: "a stop cannot be taken back once the guest was asked", NextStep: "start the VM again when it has stopped",
	},
	meanwhile: Stopping,
	begun:     func(op *Operation) string { return "stops on " + op.SourceName },
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

// judgeStop orders a stop again when nobody saw its end: a hypervisor that hung could still carry it out after the operation
// has reported failure.
func judgeStop(t *transition, seen, _ Observation) bool {
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
	return true
}
