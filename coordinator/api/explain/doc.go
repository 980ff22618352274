// Package explain has the calls that tell why a VM is where it is, where it was, and what was decided about it.
package explain

import (
	"berth/coordinator/api/answer"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/placement"
)

// DecisionCalls are those about decisions and what came of them.
type DecisionCalls struct {
	*answer.Source

	Control Control
}

// Control is what the calls need of the leader.
type Control interface {
	// Judge decides where a VM would go now, to any node or to the one that is named, and keeps nothing of that.
	Judge(vm model.VM, purpose placement.Purpose, node string) (lifecycle.Judgement, error)
}
