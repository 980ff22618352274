package lifecycle

import (
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
)

func snapshotRefused(vm *model.VM, next, format string, arguments ...any) error {
	return &lead.Error{Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf(format, arguments...), NextStep: next}
}

// revertingFirst refuses what would use disks of which some may be as in a snapshot, and others not.
func revertingFirst(vm *model.VM, what string) error {
	return snapshotRefused(vm, fmt.Sprintf(
		"repeat 'berth vm snapshot revert %s --name %s'; 'berth vm snapshot delete %s --name %s --force' gives that up, "+
			"with the disks as they are", vm.Name, vm.Reverting, vm.Name, vm.Reverting),
		"the disks of VM %q are being reverted to snapshot %q, and not all are known to be: %s", vm.Name, vm.Reverting, what)
}

// noSnapshots refuses what would lose the snapshots of a VM's disks.
func noSnapshots(vm *model.VM, what string) error {
	if len(vm.Snapshots) == 0 {
		return nil
	}
	return snapshotRefused(vm, fmt.Sprintf("delete them first: 'berth vm snapshot delete %s --name %s'", vm.Name, vm.Snapshots[0].Name),
		"VM %q has snapshots inside its disks (%s): %s", vm.Name, vm.SnapshotNames(), what)
}
