package operation

import "berth/coordinator/cluster"

// What becomes of volumes. An agent that answers a start or a preparation with a failure has removed what it made of them;
// when its answer is in doubt, they are cleared before anything else happens.

// made notes where the volumes are that were made: with the VM's node, in one command.
func (t *transition) made() {
	op := &t.Operation
	for i := range op.Volumes {
		order := &op.Volumes[i]
		if order.Disk == "" {
			continue // a seed image follows from the VM
		}
		volume := cluster.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Backing: order.BackedIn}
		if !order.Shared {
			volume.Nodes = []string{op.Target}
		}
		if t.Volumes == nil {
			t.Volumes = make(map[string]cluster.Volume, len(op.Volumes))
		}
		t.Volumes[order.Disk] = volume
	}
	op.Volumes = nil
}

// clear has a node remove the operation's volumes there.
func (t *transition) clear(node string) {
	t.Operation.Leftover = node
	t.enter(Clearing)
}

func (t *transition) clearAnswered(answer Answer) bool {
	switch {
	case answer.Outcome == OutcomeDone, t.Operation.Kind != Delete && answer.Code == "stale_epoch":
		// The second: somebody has begun anew there since, and made or removed volumes of these names.
		t.noteAnswer(answer)
		t.cleared()
	case t.Operation.Kind == Delete && answer.Outcome != OutcomeAmbiguous:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error)
	default:
		return false // asked again until they are gone
	}
	return true
}

// cleared goes on where clearing was in the way.
func (t *transition) cleared() {
	op := &t.Operation
	switch {
	case op.Kind == Start:
		t.startFailed(op.Code, op.Message)
	case op.Leftover == op.Source:
		t.end(Done, "")
	default:
		t.end(Failed, op.Message)
	}
}

// startUndone fails a start of which nobody has said that nothing is left.
func (t *transition) startUndone(code, message string) {
	if len(t.Operation.Volumes) == 0 {
		t.startFailed(code, message)
		return
	}
	t.Operation.Code, t.Operation.Message = code, message
	t.clear(t.Operation.Target)
}

func (t *transition) prepareAnswered(answer Answer) bool {
	t.noteAnswer(answer)
	switch {
	case answer.Outcome == OutcomeDone && t.Operation.Cancel:
		t.undo("cancelled before the copy began")
	case answer.Outcome == OutcomeDone:
		t.enter(Copying)
	case answer.Outcome == OutcomeAmbiguous:
		t.undo(answer.Error)
	default:
		t.end(Failed, answer.Error)
	}
	return true
}

// undo fails a migration that has not begun to copy.
func (t *transition) undo(why string) {
	if len(t.Operation.Volumes) == 0 {
		t.end(Failed, why)
		return
	}
	t.Operation.Message = why
	t.clear(t.Operation.Target)
}

// moved ends a migration whose target runs the VM. The volumes that it was copied from are of no use any more.
func (t *transition) moved() {
	if len(t.Operation.Replaced) > 0 {
		t.clear(t.Operation.Source)
		return
	}
	t.end(Done, "")
}

// lost ends a migration that neither node has the VM of. Copies that never ran go; once the target has had the VM, the
// volumes of both stay for whoever looks into it.
func (t *transition) lost(why string) {
	op := &t.Operation
	had := t.VM.Holder == op.Target
	t.VM.Holder = ""
	t.VM.Condition = "lost during a migration: " + why
	switch {
	case had && len(op.Replaced) > 0:
		t.note("on %s, where it was, %s", t.name(op.Source), stay(op.Replaced))
	case len(op.Volumes) > 0:
		op.Message = t.VM.Condition
		t.clear(op.Target)
		return
	}
	t.end(Failed, t.VM.Condition)
}
