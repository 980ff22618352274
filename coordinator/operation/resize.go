package operation

import (
	"fmt"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// Resize changes the size of a VM while it runs, and of its next start.
const Resize Kind = "resize"

// ActResize has the node change the size of a guest that runs.
const ActResize Action = "resize"

// ResizePatience is how long a change of the size waits for the answer of its node.
const ResizePatience = 2 * time.Minute

// kindResize keeps the larger of the two sizes on the node while it goes on: until the answer nobody knows which of them the guest has.
var kindResize = kind{
	name: Resize,
	phases: map[Phase]phase{Dispatched: {
		node: atSource, answered: resizeAnswered, off: endOff, overdue: uncertainAfter(ResizePatience, "has"), unbegun: takenBack, dated: true,
		order: func(op *Operation, vm *model.VM) Order {
			return Order{Action: ActResize, Epoch: vm.Epoch, Size: op.Size}
		},
	}},
	done:     func(t *transition) { t.VM = Resized(t.VM, &t.Operation, t.at) },
	reserves: true,
	bound: Bound{
		Why: "its node has the order already", NextStep: fmt.Sprintf("it ends by itself within %s", ResizePatience),
	},
	level:     3,
	meanwhile: Running,
	begun: func(op *Operation) string {
		return op.later("get "+SizeText(op.Size), fmt.Sprintf("is to get %s on %s", SizeText(op.Size), op.SourceName))
	},
	doing: func(op *Operation) string { return "changing to " + SizeText(op.Size) + " on " + op.SourceName },
	ended: func(op *Operation) (event, text string) {
		text = "has " + SizeText(op.Size) + " from now on"
		if op.Message != "" {
			text += ": " + op.Message
		}
		return "vm.resized", text
	},
}

// resizeAnswered is as for a change of devices, but that the node says what the guest has come to, and a refusal what else there is.
func resizeAnswered(t *transition, answer Answer) bool {
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false
	case OutcomeDone:
		t.noteAnswer(answer)
		t.end(Done, answer.Note)
	default:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error+"; without --now its next start has that")
	}
	return true
}

// SizeText names what of a size is given: "memory 2 GiB, 4 vCPUs".
func SizeText(size model.Size) string {
	var texts []string
	if size.Memory > 0 {
		texts = append(texts, fmt.Sprintf("memory %v", size.Memory))
	}
	switch {
	case size.VCPUs == 1:
		texts = append(texts, "1 vCPU")
	case size.VCPUs > 0:
		texts = append(texts, fmt.Sprintf("%d vCPUs", size.VCPUs))
	}
	return strings.Join(texts, ", ")
}

// Resized is a VM that has been given the size that an operation is about, where it runs and at its next start.
func Resized(vm model.VM, op *Operation, at time.Time) model.VM {
	vm.Resize(op.Size, op.Caller, at)
	if vm.Spec.XML == "" {
		return vm
	}
	// It was tried before the operation began. Were it not to be done now, the record would say what the document does not.
	if text, err := domxml.Resize(vm.Spec.XML, int64(op.Size.Memory), op.Size.VCPUs); err == nil {
		vm.Spec.XML = text
	}
	return vm
}
