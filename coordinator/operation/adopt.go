package operation

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// MarkPatience is how long an operation that only changes a domain's mark waits for its node. The guest runs in any case.
const MarkPatience = 2 * time.Minute

// kindAdopt makes a running domain a VM, or takes over a VM where somebody else has moved it.
var kindAdopt = kind{
	name: Adopt,
	phases: map[Phase]phase{Dispatched: {
		node: atTarget, order: adoptOrder, answered: adoptAnswered, overdue: func(t *transition, waited time.Duration) bool {
			return t.markInVain(waited, t.name(t.Operation.Target)+" did not answer: adopt it again, whether or not the mark was written")
		},
	}},
	brings:    true,
	meanwhile: Running,
	begun:     func(op *Operation) string { return "is adopted on " + op.TargetName },
	doing:     func(op *Operation) string { return "being adopted on " + op.TargetName },
	ended:     adopted,
}

// adoptOrder writes the mark of the operation's epoch.
func adoptOrder(op *Operation, _ *model.VM) Order { return Order{Action: ActAdopt, Epoch: op.Epoch} }

func adoptAnswered(t *transition, answer Answer) bool {
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false // asked again: writing a mark twice does no harm
	case OutcomeDone:
		t.noteAnswer(answer)
		if t.VM.Holder != "" && t.VM.Holder != t.Operation.Target {
			t.VM.MovedAt = t.at
		}
		if t.VM.Holder == "" {
			t.VM.RanSize, t.VM.Ballooned = model.Size{}, false // somebody else has started it: its node knows how large
		}
		t.hold(t.Operation.Target, t.Operation.Epoch)
		t.end(Done, "")
	default:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error)
	}
	return true
}

// cancelPatience is how long an operation that was cancelled waits for an answer all the same: the mark may be written, and then it is
// too late.
const cancelPatience = 2 * ResendEvery

// markInVain ends an operation that changes a mark, if its node has not answered, also after it was cancelled.
func (t *transition) markInVain(waited time.Duration, why string) bool {
	over := waited >= MarkPatience || t.Operation.Cancel && waited >= cancelPatience
	if over {
		t.end(Failed, why)
	}
	return over
}

func adopted(op *Operation) (event, text string) {
	if op.Source != "" {
		return "vm.moved-elsewhere", fmt.Sprintf(
			"was moved from %s to %s by somebody else; epoch %d from now on", op.SourceName, op.TargetName, op.Epoch,
		)
	}
	return "vm.adopted", fmt.Sprintf("Berth has it on %s from now on, under epoch %d", op.TargetName, op.Epoch)
}
