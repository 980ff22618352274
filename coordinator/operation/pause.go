package operation

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// The kinds of operation that have a guest stand still, and run on.
const (
	Pause  Kind = "pause"
	Resume Kind = "resume"
)

// The orders of these. Resuming the copy that a migration has left is another one: it is refused for a guest that somebody has paused.
const (
	ActPause   Action = "pause"
	ActUnpause Action = "unpause"
)

// PausePatience is how long a pause or a resume waits for the answer of its node.
const PausePatience = 2 * time.Minute

// kindPause has a guest stand still where it runs. The record says by whom, so that nobody takes it for hung.
var kindPause = kind{
	name:      Pause,
	phases:    map[Phase]phase{Dispatched: standing(ActPause)},
	done:      func(t *transition) { t.VM.Paused = model.Stand{By: t.Operation.Caller, At: t.at} },
	bound:     standingBound,
	level:     3,
	meanwhile: Running,
	begun:     func(op *Operation) string { return op.later("pause", "is being paused on "+op.SourceName) },
	doing:     func(op *Operation) string { return "pausing on " + op.SourceName },
	ended:     func(op *Operation) (event, text string) { return "vm.paused", "is paused on " + op.SourceName },
}

// kindResume lets a guest run that stands still.
var kindResume = kind{
	name:      Resume,
	phases:    map[Phase]phase{Dispatched: standing(ActUnpause)},
	done:      func(t *transition) { t.VM.Paused = model.Stand{} },
	bound:     standingBound,
	level:     3,
	meanwhile: Running,
	begun:     func(op *Operation) string { return op.later("resume", "is let run on "+op.SourceName) },
	doing:     func(op *Operation) string { return "resuming on " + op.SourceName },
	ended:     func(op *Operation) (event, text string) { return "vm.resumed", "runs on " + op.SourceName + " again" },
}

var standingBound = Bound{
	Why: "its node has the order already", NextStep: fmt.Sprintf("it ends by itself within %s", PausePatience),
}

// standing is the one phase of both.
func standing(action Action) phase {
	return phase{
		node: atSource, unbegun: takenBack, dated: true,
		order:    func(_ *Operation, vm *model.VM) Order { return Order{Action: action, Epoch: vm.Epoch} },
		answered: untilCertain,
		off:      endOff,
		overdue:  uncertainAfter(PausePatience, "does"),
	}
}
