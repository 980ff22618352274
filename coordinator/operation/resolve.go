package operation

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// Whose copy is the VM, as a person may decide about a parked operation.
const (
	KeepSource = "source"
	KeepTarget = "target"
	KeepNone   = "none"
)

// ObstacleCode is the reason why a resolution is not possible.
type ObstacleCode string

// The reasons why a resolution is not possible.
const (
	NotParked    ObstacleCode = "not parked"
	NoSuchSide   ObstacleCode = "no such side"   // the operation has no such node
	StillThere   ObstacleCode = "still there"    // the node shows a copy that should not be kept
	NotHeard     ObstacleCode = "not heard"      // the node does not say for certain what it has
	NotThere     ObstacleCode = "not there"      // the node does not show the copy that should be kept
	DisksMoved   ObstacleCode = "disks moved"    // they were copied, and their records have them on the target
	KeepsUnknown ObstacleCode = "unknown choice" // neither source, target nor none
)

// Obstacle is why an operation cannot be resolved as asked.
type Obstacle struct {
	Code ObstacleCode
	Node string // ID, if it is about a node
	Seen Observation
}

// Resolve ends a parked operation by a person's decision. Keep says whose copy is the VM. Nothing is killed for it, so every
// copy that is not kept must for certain run nowhere. Seen is what each node shows, by ID; its State is unknown if the node
// does not tell. First the losing nodes refuse the VM for good. Then the copy that is kept gets an epoch of its own, and is
// resumed if the migration paused it. By and at say who decided and when; the operation keeps them and what was seen.
func Resolve(
	op Operation, vm model.VM, keep string, seen map[string]Observation, by string, at time.Time,
) (Next, *Obstacle) {
	if !op.Live() || op.Result != Parked {
		return Next{}, &Obstacle{Code: NotParked}
	}
	t := newTransition(op, vm, at)
	kept := ""
	switch keep {
	case KeepSource:
		kept = op.Source
	case KeepTarget:
		kept = op.Target
	case KeepNone:
	default:
		return Next{}, &Obstacle{Code: KeepsUnknown}
	}
	if kept == "" && keep != KeepNone {
		return Next{}, &Obstacle{Code: NoSuchSide}
	}
	for _, node := range []string{op.Source, op.Target} {
		if node == "" {
			continue
		}
		if obstacle := inTheWay(node, seen[node], node == kept); obstacle != nil {
			return Next{}, obstacle
		}
		t.note(
			"when it was resolved, %s showed domain %s, epoch %d, job %t", t.name(node), seen[node].State, seen[node].Epoch,
			seen[node].JobActive,
		)
	}
	if keep == KeepSource && op.CopyStorage && vm.Holder == op.Target {
		return Next{}, &Obstacle{Code: DisksMoved, Node: op.Target}
	}
	t.note("%s resolved it at %s: keep %s", by, at.UTC().Format(time.RFC3339), keep)
	next := &t.Operation
	next.Result, next.Message, next.Resolution, next.ResolvedBy = Pending, "resolved by "+by+": keep "+keep, keep, by
	next.Leftover, next.Revert, next.Cancel = "", false, false
	t.VM.Condition = model.Condition{}
	if kept != "" {
		t.VM.LastEpoch = t.VM.EpochsGiven() + 1
	}
	switch keep {
	case KeepSource:
		next.SourceEpoch = t.VM.LastEpoch
	case KeepTarget:
		next.Epoch = t.VM.LastEpoch
	}
	if keep != KeepTarget && op.CopyStorage && vm.Holder != op.Target {
		t.leaveCopies(false) // until the source has answered, nobody has seen the disks there
	}
	t.closeNext("")
	return t.Next, nil
}

func inTheWay(node string, seen Observation, kept bool) *Obstacle {
	gone := seen.State == model.DomainAbsent || seen.State == model.DomainShutoff
	switch {
	case seen.State == "" || seen.State == model.DomainUnknown:
		return &Obstacle{Code: NotHeard, Node: node, Seen: seen}
	case kept && (gone || seen.State == model.DomainCrashed):
		return &Obstacle{Code: NotThere, Node: node, Seen: seen}
	case !kept && !gone:
		return &Obstacle{Code: StillThere, Node: node, Seen: seen}
	}
	return nil
}

// closeNext has the next losing node refuse the VM, beginning after the one that did so last. When there is none it goes on.
func (t *transition) closeNext(closed string) {
	op := &t.Operation
	for _, side := range []struct{ node, keep string }{{op.Target, KeepTarget}, {op.Source, KeepSource}} {
		switch {
		case side.node == "", op.Resolution == side.keep:
			continue
		case closed != "":
			if side.node == closed {
				closed = ""
			}
			continue
		}
		op.Leftover = side.node
		t.enter(Discarding)
		return
	}
	op.Leftover = ""
	if op.Resolution == KeepNone {
		noneKept(t)
		return
	}
	t.enter(Marking)
}

// markOrder gives the copy that is kept a new epoch.
func markOrder(op *Operation, _ *model.VM) Order {
	if op.Resolution == KeepSource {
		return Order{Action: ActAdopt, Epoch: op.SourceEpoch}
	}
	return Order{Action: ActAdopt, Epoch: op.Epoch}
}

func markOverdue(t *transition, waited time.Duration) bool {
	late := waited >= MarkPatience
	if late {
		t.parkAgain(notAnsweredFor(waited))
	}
	return late
}

func notAnsweredFor(waited time.Duration) string {
	return "the nodes have not answered for " + waited.Round(time.Second).String()
}

// markAnswered continues with the copy that is kept, once it has its own epoch.
func markAnswered(t *transition, answer Answer) bool {
	op := &t.Operation
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false
	case OutcomeDone:
	default:
		t.noteAnswer(answer)
		t.parkAgain(answer.Error)
		return true
	}
	t.noteAnswer(answer)
	paused := answer.Seen.State == model.DomainPausedMigration
	if op.Resolution == KeepSource {
		t.hold(op.Source, op.SourceEpoch)
		if paused {
			t.enter(Reverting)
		} else {
			sourceKept(t)
		}
		return true
	}
	if t.VM.Holder == op.Target {
		t.hold(op.Target, op.Epoch)
	} else {
		t.takeOver()
	}
	if paused || answer.Seen.State == model.DomainPaused { // a strict hand-over leaves it paused
		t.enter(HandedOver)
	} else {
		t.moved()
	}
	return true
}

// sourceKept ends a migration of which a person keeps the source's guest. That has its disks open, so the copies are of no use any more.
func sourceKept(t *transition) {
	if t.VM.Copies == nil {
		t.end(Failed, t.Operation.Message)
		return
	}
	t.VM.Copies = nil
	t.clear(t.Operation.Target)
}

// parkAgain gives an operation back to the person: the decision could not be carried out.
func (t *transition) parkAgain(why string) {
	t.Operation.Phase = Judging
	t.Operation.Step++
	t.Operation.Leftover = ""
	decided := t.Operation.Resolution
	t.Operation.Resolution = ""
	t.park(fmt.Sprintf("to keep %s, as was decided, could not be done: %s", decided, why))
}

// atKept is the node whose copy is the VM, in a resolved operation.
func atKept(op *Operation) string {
	if op.Resolution == KeepSource {
		return op.Source
	}
	return op.Target
}

// resolved tells whether the operation carries out a person's decision.
func (o *Operation) resolved() bool { return o.Resolution != "" }
