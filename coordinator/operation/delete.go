package operation

import (
	"time"

	"berth/coordinator/model"
)

// kindDelete forgets a stopped VM once its node has removed its volumes.
var kindDelete = kind{
	name: Delete,
	phases: map[Phase]phase{Clearing: {
		node: atLeftover, order: deleteOrder, answered: deleteAnswered, soon: true, explained: true,
		// Only its node can say that nothing is left. So it waits for the node, or for somebody to cancel it.
		off: func(*transition) bool { return false },
		overdue: func(t *transition, _ time.Duration) bool {
			if t.Operation.Cancel {
				t.end(Failed, "cancelled while "+t.name(t.Operation.Leftover)+" removes its volumes: delete it again to finish that")
			}
			return t.Operation.Cancel
		},
	}},
	forgets: true,
	begun:   func(op *Operation) string { return "is deleted: " + op.SourceName + " removes its volumes" },
	doing:   func(*Operation) string { return "removing its disks" },
	ended:   func(*Operation) (event, text string) { return "vm.deleted", "deleted; its volumes are gone" },
}

func deleteOrder(op *Operation, _ *model.VM) Order {
	return Order{Action: ActClear, Epoch: op.Epoch, Volumes: op.Replaced}
}

func deleteAnswered(t *transition, answer Answer) bool {
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false // asked again until they are gone
	case OutcomeDone:
		t.noteAnswer(answer)
		t.end(Done, "")
	default:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error)
	}
	return true
}
