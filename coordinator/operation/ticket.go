package operation

import (
	"time"

	"berth/coordinator/model"
)

// A migration begins with a ticket: its target journals that it will be asked to resume the guest. So it is known to hear the leader
// and to take an entry, and the order to resume needs no room in its journal any more. A target that turns suspect afterwards gets no
// guest, as long as the guest runs on its source.

// TicketPatience is how long a migration waits for its target's ticket.
const TicketPatience = 15 * time.Second

// WatchEvery is how often a driver looks whether the target of a migration has turned suspect.
const WatchEvery = 5 * time.Second

// Suspected continues an operation whose target is suspect; why says so: "node2 is silent for 20s". It reports false when nothing
// follows from it in the present phase.
func Suspected(op Operation, vm model.VM, why string, at time.Time) (Next, bool) {
	if !op.Live() || op.Result == Parked || why == "" {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	now, ordered := t.kind.phases[op.Phase]
	if !ordered || now.suspect == nil || !now.suspect(t, why) {
		return Next{}, false
	}
	return t.Next, true
}

// prepareSuspect ends a migration that has not begun to copy.
func prepareSuspect(t *transition, why string) bool {
	t.note("before the copy: %s", why)
	t.undo("not begun, because " + why)
	return true
}

// copySuspect gives a copy up, as if somebody had cancelled it. If the guest stands still already, it is handed over all the same.
func copySuspect(t *transition, why string) bool {
	if t.Operation.GivenUp != "" {
		return false
	}
	t.Operation.GivenUp = "given up before the hand-over, because " + why
	t.Operation.Message = t.Operation.GivenUp
	t.note("%s", t.Operation.GivenUp)
	return true
}

// resumeSuspect says what a guest waits for that stands still on a node which nobody hears.
func resumeSuspect(t *transition, why string) bool {
	op := &t.Operation
	message := "it stands still on " + t.name(op.Target) + " until the agent there hears the leader; 'berth node fence " + t.name(op.Target) +
		" --confirmed-off' ends the wait if that machine is off"
	if op.Message == message {
		return false
	}
	op.Message = message
	t.note("while it is handed over: %s", why)
	return true
}

// prepareUnjournalled ends a migration whose target can give no ticket. Volumes that an earlier order has made there are removed first.
func prepareUnjournalled(t *transition, why string) bool {
	if len(t.Operation.Volumes) > 0 {
		return false
	}
	t.note("%s gave no ticket: %s", t.name(t.Operation.Target), why)
	t.end(Failed, t.name(t.Operation.Target)+" could not promise to resume it: "+why)
	return true
}
