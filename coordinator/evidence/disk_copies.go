package evidence

import (
	"fmt"

	"berth/coordinator/model"
)

// Superseded tells whether the copies of a VM's disks that a migration has left are of no use any more, and can be removed: the VM runs
// with its disks, so somebody has seen them. Another node's volumes prove nothing while nobody has read them.
func Superseded(m Moment, vm *model.VM) bool {
	if vm.Copies == nil || vm.Operation != "" || vm.Holder == "" {
		return false
	}
	facts, there := m.Facts(vm.Holder), m.Facts(vm.Copies.Node)
	domain := facts.Domain(vm.ID)
	return facts.Liveness == model.Up && facts.DomainsKnown && domain != nil && domain.State == model.DomainRunning && domain.Managed &&
		domain.Epoch == vm.Epoch && there.Liveness == model.Up
}

// CopiesLeft is the condition of a VM of whose disks a migration has left copies, where nothing worse is known of it. Node is the name of
// the one that has them.
func CopiesLeft(left *model.DiskCopies, node string) model.Condition {
	copies, disks := left.Side()
	text := fmt.Sprintf("volumes on %s may be the last copy of its disks, and go once it has run with its disks; 'berth operation resolve %s "+
		"--keep %s' removes them", node, left.Operation, disks)
	if left.Whole {
		text += ", '--keep " + copies + "' makes them its disks"
	}
	return model.Condition{Kind: model.VolumesLeft, About: left.Node, Text: text}
}
