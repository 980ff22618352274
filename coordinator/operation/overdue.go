package operation

import (
	"time"

	"berth/coordinator/model"
)

// Overdue ends what waits too long, as the operation's phase has it. It reports false when the operation may go on waiting.
func Overdue(op Operation, vm model.VM, at time.Time) (Next, bool) {
	if !op.Live() || op.Result == Parked {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	now, ordered := t.kind.phases[op.Phase]
	if !ordered || now.overdue == nil || !now.overdue(t, at.Sub(op.UpdatedAt)) {
		return Next{}, false
	}
	return t.Next, true
}
