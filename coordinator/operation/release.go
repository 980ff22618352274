package operation

import (
	"time"

	"berth/coordinator/model"
)

// kindRelease gives a VM back: its domain runs on without Berth's mark, and its record is deleted.
var kindRelease = kind{
	name: Release,
	phases: map[Phase]phase{Dispatched: {
		node: atSource, order: releaseOrder, answered: releaseAnswered, overdue: func(t *transition, waited time.Duration) bool {
			return t.markInVain(waited, t.name(t.Operation.Source)+" did not answer: release it again, whether or not the mark was taken away")
		},
	}},
	forgets:   true,
	meanwhile: Running,
	begun:     func(op *Operation) string { return "is released on " + op.SourceName },
	doing:     func(op *Operation) string { return "being released on " + op.SourceName },
	ended: func(op *Operation) (event, text string) {
		return "vm.released", "forgotten; its domain runs on, on " + op.SourceName
	},
}

func releaseOrder(op *Operation, _ *model.VM) Order {
	return Order{Action: ActRelease, Epoch: op.Epoch}
}

func releaseAnswered(t *transition, answer Answer) bool {
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false
	case OutcomeDone:
		t.noteAnswer(answer)
		t.end(Done, "")
	default:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error)
	}
	return true
}
