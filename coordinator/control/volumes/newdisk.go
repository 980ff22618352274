package volumes

import (
	"fmt"
	"slices"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
	"berth/coordinator/state"
)

// AttachNew has an attachment make its disk, and links the VM to it. A guest that runs gets it now: its record has a volume that nothing
// may use until the guest has it. For a VM that does not run it is made by the next start. Refusals are of type *Error.
func (v *Volumes) AttachNew(
	snapshot *state.Snapshot, op *operation.Operation, vm *model.VM, wanted *model.Resource,
) (*model.Resource, error) {
	disk := *wanted
	if other, taken := snapshot.ResourceByName(model.KindDisk, disk.Name); taken {
		return nil, &lead.Error{
			Code: lead.Exists, Subject: "disk/" + disk.Name, Message: fmt.Sprintf("disk %q exists already (ID %s)", disk.Name, other.ID),
			NextStep: "choose another name with --name, or leave that out",
		}
	}
	vm.Disks = append(slices.Clone(vm.Disks), disk.ID)
	if vm.Holder == "" {
		return &disk, linkable(vm, &disk)
	}
	if len(op.Edits) == 0 {
		return nil, &lead.Error{
			Code: lead.Busy, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q was started at this moment", vm.Name), NextStep: "try again",
		}
	}
	pool, size := disk.Links[schema.LinkPool], estate.SizeWanted(&disk)
	if err := v.roomOn(snapshot, pool, vm.Holder, size); err != nil {
		return nil, err
	}
	order, err := estate.NewDiskOrder(snapshot, disk, placement.PoolChoice{Disk: disk.ID, Pool: pool})
	if err != nil {
		return nil, &lead.Error{
			Code: lead.Invalid, Subject: "disk/" + disk.Name, Message: err.Error(), NextStep: "see 'berth pool list', and name another pool",
		}
	}
	disk.Volume = &model.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Doomed: true}
	if !order.Shared {
		disk.Volume.Nodes = []string{vm.Holder}
	}
	op.Volumes, op.Disks = []model.VolumeOrder{order}, []string{disk.ID}
	return &disk, nil
}

// linkable refuses to link a VM that does not run to a new disk if its next start would not have it, or would boot from it.
func linkable(vm *model.VM, disk *model.Resource) error {
	next := fmt.Sprintf("start it with 'berth vm start %s' and attach the disk then", vm.Name)
	switch {
	case vm.Spec.XML != "":
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message:  fmt.Sprintf("VM %q does not run, and its next start has the disks of its document, not %q", vm.Name, disk.Name),
			NextStep: next,
		}
	case len(vm.Disks) == 1 && len(vm.Spec.Disks) > 0 && vm.Spec.Kernel == "":
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("VM %q does not run, and its next start would boot from the empty disk %q instead of %s", vm.Name, disk.Name,
				vm.Spec.Disks[0].Path),
			NextStep: next,
		}
	}
	return nil
}
