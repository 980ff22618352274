package operation

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// Reboot restarts the guest of a VM where it runs.
const Reboot Kind = "reboot"

// ActReboot has the node ask the guest to restart, once at most, and wait until it has.
const ActReboot Action = "reboot"

// RebootPatience is how long a reboot waits for the answer of its node, which gives a guest three minutes.
const RebootPatience = 5 * time.Minute

// kindReboot changes no record of where the VM is. So whatever its end, nothing has to be judged.
var kindReboot = kind{
	name: Reboot,
	phases: map[Phase]phase{Dispatched: {
		node: atSource, order: rebootOrder, answered: rebootAnswered, overdue: rebootOverdue, unbegun: takenBack, dated: true,
	}},
	bound: Bound{
		Why:      "a reboot cannot be taken back once the guest was asked",
		NextStep: fmt.Sprintf("it ends by itself within %s", RebootPatience),
	},
	level:     3,
	meanwhile: Running,
	begun:     func(op *Operation) string { return op.later("restart in place", "restarts in place on "+op.SourceName) },
	doing:     func(op *Operation) string { return "rebooting on " + op.SourceName },
	ended: func(op *Operation) (event, text string) {
		return "vm.rebooted", "has restarted in place on " + op.SourceName
	},
}

func rebootOrder(op *Operation, vm *model.VM) Order {
	return Order{Action: ActReboot, Epoch: vm.Epoch, Force: op.Force}
}

func rebootAnswered(t *transition, answer Answer) bool {
	t.noteAnswer(answer)
	switch asked := answer.Outcome == OutcomeFailed && answer.Seen.State == model.DomainRunning; {
	case answer.Outcome == OutcomeDone:
		t.end(Done, "")
	case asked && !t.Operation.Force:
		t.end(Failed, fmt.Sprintf("%s; 'berth vm reboot %s --force' resets it", answer.Error, t.Operation.VMName))
	default:
		t.end(Failed, answer.Error)
	}
	return true
}

func rebootOverdue(t *transition, waited time.Duration) bool {
	late := waited >= RebootPatience
	if late {
		t.end(Failed, t.name(t.Operation.Source)+" did not answer: it is not known whether the guest was asked to restart")
	}
	return late
}
