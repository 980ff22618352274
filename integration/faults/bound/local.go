package bound

import (
	"time"

	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
)

// LocalEvery is the pause between two looks at what binds VMs to their nodes, as control's.
const LocalEvery = 500 * time.Millisecond

// Settled are the records of VMs that are bound to a node from now on, or no more: nothing but that node is known to have all their disks.
// Facts are what the leader knows of a node.
func Settled(site *machine.Site, snapshot *state.Snapshot, facts func(node string) model.NodeFacts) (before, after []model.VM) {
	for _, vm := range snapshot.VMs() {
		if !site.Local[vm.ID] || vm.Operation != "" || vm.Holder == "" {
			continue
		}
		told := facts(vm.Holder)
		domain := told.Domain(vm.ID)
		if !told.PoolsKnown || domain == nil || domain.Epoch != vm.Epoch || !domain.State.Lives() {
			continue
		}
		is := bind(snapshot, vm, vm.Holder, &told)
		if is.Bound != vm.Bound {
			before, after = append(before, vm), append(after, is)
		}
	}
	return before, after
}

// bind is the record of a VM with the node that alone has a disk of it: the one that it runs on or may have run on, or none.
func bind(snapshot *state.Snapshot, vm model.VM, node string, told *model.NodeFacts) model.VM {
	local, err := drift.LocalDisk(snapshot, &vm, model.DefaultCluster, told)
	switch {
	case err != nil || !told.PoolsKnown:
	case local != "":
		vm.Bound = node
	default:
		vm.Bound = ""
	}
	return vm
}

// AtHome is the record of a VM that has ended beside Berth and is started again: where its disks are on one machine, only there.
func AtHome(vm model.VM) model.VM {
	if vm.Home != "" {
		vm.Holder = ""
	}
	return vm
}
