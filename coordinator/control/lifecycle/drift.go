package lifecycle

import (
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// undrifted refuses to start a VM that somebody has changed beside Berth while it ran, if its record was changed in the same place since:
// either of the two may be the disk with the newest writes.
func undrifted(facts estate.Facts, vm *model.VM) error {
	if vm.Drift == nil {
		return nil
	}
	baseline, err := drift.Baseline(facts, vm)
	if err != nil {
		return Unlinked(*vm, err)
	}
	last, _ := facts.Node(vm.Drift.Node)
	inside, known := facts.ResourceByName(model.KindCluster, last.ClusterName())
	cluster := &inside
	if !known {
		cluster = nil
	}
	if asked := drift.Asked(vm, cluster); asked != "" {
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("VM %q is not started before somebody has decided what is right: %s", vm.Name, asked),
			NextStep: fmt.Sprintf("start it as it ran last after 'berth vm accept %s', or as its record says after 'berth vm revert %s'", vm.Name,
				vm.Name),
		}
	}
	why := drift.Conflict(vm, baseline)
	if why == "" {
		return nil
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q ran last with devices that its record does not have: %s",
			vm.Name, why),
		NextStep: fmt.Sprintf("put the record back, or start from it as it is, without what the guest has written elsewhere, after "+
			"'berth vm revert %s'", vm.Name),
	}
}

// wholeDisks refuses to move a VM with its disks while it runs with others than its record has: only those of the record would go along.
func wholeDisks(vm *model.VM) error {
	for _, edit := range vm.Drifted() {
		if edit.Kind == "disk" && !edit.Media {
			return &lead.Error{
				Code: lead.Conflict, Subject: "vm/" + vm.Name,
				Message: fmt.Sprintf("VM %q cannot move with its disks: %s", vm.Name, edit.Text()),
				NextStep: fmt.Sprintf("write a snapshot back with 'virsh blockcommit %s %s --active --pivot --wait' where it runs, or detach "+
					"what was attached", vm.Name, edit.Key),
			}
		}
	}
	return nil
}
