package operation

import "berth/coordinator/model"

// Volumes. An agent that answers a start or a preparation with a failure has removed the volumes that it made. When the
// answer is in doubt, they are cleared before anything else happens.

// made records where the new volumes are, in the command that records the VM's node.
func (t *transition) made() {
	op := &t.Operation
	for i := range op.Volumes {
		order := &op.Volumes[i]
		if order.Disk == "" {
			continue // a seed image follows from the VM
		}
		volume := model.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Backing: order.BackedIn}
		if !order.Shared {
			volume.Nodes = []string{op.Target}
		}
		if t.Volumes == nil {
			t.Volumes = make(map[string]model.Volume, len(op.Volumes))
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
	case answer.Outcome == OutcomeDone, t.Operation.Kind != Delete && answer.Code == StaleEpoch:
		// Somebody has begun again there since, and made or removed volumes with these names.
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

// cleared continues what had to wait for the clearing.
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

// startUndone fails a start after which volumes may be left.
func (t *transition) startUndone(code ErrorCode, message string) {
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

// moved ends a migration whose target runs the VM. The volumes on its source are not needed any more.
func (t *transition) moved() {
	if len(t.Operation.Replaced) > 0 {
		t.clear(t.Operation.Source)
		return
	}
	t.end(Done, "")
}

// lost ends a migration after which neither node has the VM. Copies that never ran are removed. If the target has had the VM,
// the volumes of both nodes stay, so that a person can look into it.
func (t *transition) lost(why string) {
	op := &t.Operation
	had := t.VM.Holder == op.Target
	t.VM.Holder = ""
	message := "lost during a migration: " + why
	t.VM.Condition = model.Condition{Kind: model.LostMoving, About: op.ID, Text: message}
	switch {
	case had && len(op.Replaced) > 0:
		t.note("on %s, where it was, %s", t.name(op.Source), stay(op.Replaced))
	case len(op.Volumes) > 0:
		op.Message = message
		t.clear(op.Target)
		return
	}
	t.end(Failed, message)
}
