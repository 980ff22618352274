package operation

import (
	"fmt"
	"strings"
	"time"

	"berth/coordinator/model"
)

// The kinds of operation that change devices of a VM: of its guest, if that runs, and of what its next start has.
const (
	Attach Kind = "attach"
	Detach Kind = "detach"
	Media  Kind = "media" // what is in a drive
)

// ActAmend has the node change devices of a guest that runs.
const ActAmend Action = "amend"

// AmendPatience is how long a change of devices waits for the answer of its node, which gives a guest half a minute to let go of one.
const AmendPatience = 3 * time.Minute

var (
	kindAttach = withNewDisk(amending(Attach, "vm.attached", "attach", "attaching"))
	kindDetach = unlinking(amending(Detach, "vm.detached", "detach", "detaching"))
	kindMedia  = amending(Media, "vm.media-changed", "change", "changing")
)

// amending is a kind of operation that changes devices. When it is done the record has the change under the name of who has asked for it,
// so that nobody takes it for one that was made beside Berth.
func amending(name Kind, event, verb, doing string) kind {
	return kind{
		name: name,
		phases: map[Phase]phase{Dispatched: {
			node: atSource, order: amendOrder, answered: untilCertain, off: endOff, overdue: uncertainAfter(AmendPatience, "has"),
			unbegun: takenBack, dated: true,
		}},
		done: func(t *transition) { t.VM.Amend(t.Operation.Edits, t.Operation.Source, t.at) },
		bound: Bound{
			Why: "its node has the order already", NextStep: fmt.Sprintf("it ends by itself within %s", AmendPatience),
		},
		level:     3,
		meanwhile: Running,
		begun: func(op *Operation) string {
			return op.later(verb+" "+op.deviceNames(), fmt.Sprintf("is to %s %s on %s", verb, op.deviceNames(), op.SourceName))
		},
		doing: func(op *Operation) string {
			if op.SourceName == "" { // it does not run
				return doing + " " + op.deviceNames()
			}
			return fmt.Sprintf("%s %s on %s", doing, op.deviceNames(), op.SourceName)
		},
		ended: func(op *Operation) (string, string) {
			texts := make([]string, 0, len(op.Edits))
			for i := range op.Edits {
				texts = append(texts, op.Edits[i].Text())
			}
			return event, strings.Join(texts, "; ")
		},
	}
}

// deviceNames are the devices that an operation changes: "disk vdb".
func (o *Operation) deviceNames() string {
	names := make([]string, 0, len(o.Edits))
	for _, edit := range o.Edits {
		names = append(names, edit.Kind+" "+edit.Key)
	}
	return strings.Join(names, ", ")
}

func amendOrder(op *Operation, vm *model.VM) Order {
	return Order{Action: ActAmend, Epoch: vm.Epoch, Edits: op.Edits, Volumes: op.Volumes}
}

// uncertainAfter ends an operation whose node has told nothing for certain for so long. What its guest does, or has, is seen later.
func uncertainAfter(patience time.Duration, what string) func(*transition, time.Duration) bool {
	return func(t *transition, waited time.Duration) bool {
		late := waited >= patience
		if late {
			t.end(Failed, fmt.Sprintf("%s did not answer for certain: 'berth vm show %s' tells what its guest %s once it is heard",
				t.name(t.Operation.Source), t.Operation.VMName, what))
		}
		return late
	}
}

// untilCertain takes an answer of an order that may be repeated until its node can tell: what is so already is done. So an answer that is
// in doubt leads nowhere.
func untilCertain(t *transition, answer Answer) bool {
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

func endOff(t *transition) bool {
	t.end(Failed, t.name(t.Operation.Source)+" "+off)
	return true
}
