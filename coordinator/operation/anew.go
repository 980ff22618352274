package operation

import (
	"time"

	"berth/coordinator/model"
)

// targetAnew tells that the host of the operation's target has booted since the operation began, or is off.
func (o *Operation) targetAnew(seen Observation) bool {
	return seen.Anew || o.TargetBoot != "" && seen.Boot != "" && seen.Boot != o.TargetBoot
}

// lostWithTarget takes note that the VM's new host was lost before it could say that the VM runs there.
func (t *transition) lostWithTarget() { t.VM.Lose(t.Operation.TargetName, t.at, t.at) }

// lostMeanwhile counts the host of a start that has booted since the order was given: the answer that the VM ran may have been lost with
// it. That comes before the order is repeated, or the VM takes the host down once more, and nobody has counted. Once too many were lost the
// order is not repeated: what the node shows decides. Boot is of the host as it is heard; empty: it was not.
func lostMeanwhile(op Operation, vm model.VM, boot string, at time.Time) (Next, bool) {
	if op.Kind != Start || op.Phase != Dispatched || !op.targetAnew(Observation{Boot: boot}) {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	t.note("%s has booted anew since the order was given", t.name(op.Target))
	t.lostWithTarget()
	t.Operation.TargetBoot, t.Wrote = boot, op.Target
	if t.VM.LostTooMany() {
		t.enter(Judging)
	}
	return t.Next, true
}
