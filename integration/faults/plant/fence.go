package plant

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
)

// LeadsSince is when a leadership that begins now begins to count.
func (b Bug) LeadsSince(now time.Time) time.Time {
	if b == EarlierCallIgnored {
		return now.Add(-time.Hour)
	}
	return now
}

// Outlive changes what is to be committed at the end of a fencing.
func (b Bug) Outlive(command *state.Command, node model.Node, message string, proven bool) {
	if len(command.Nodes) == 0 {
		return
	}
	is := &command.Nodes[0].Fencing
	believed := b == FailureIsProof && message == machine.ErrDeviceOut.Error()
	if believed || b == ProofOutlivesBoot && proven {
		*is = node.Fencing
		is.Phase, is.Message = model.FencingProven, message
	}
}

// Again tells of a VM without HA whether it is started again by itself.
func (b Bug) Again(is func(*model.VM) bool) func(*model.VM) bool {
	if b == LeftOff {
		return func(vm *model.VM) bool { return vm.HA }
	}
	return is
}
