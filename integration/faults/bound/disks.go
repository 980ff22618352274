package bound

import (
	"berth/coordinator/model"
	"berth/integration/faults/machine"
)

// DisksOf are the disks that a VM is made with: these volumes of its machine, or a file that its machine has for itself, or that lies in
// the pool which is declared as shared, or, where disks are Shared, that all machines see. Most sites have VMs without any.
func DisksOf(site *machine.Site, vm *model.VM, volumes []model.VolumeOrder, shared bool) (disks []model.Disk) {
	file := func(folder string) []model.Disk {
		return []model.Disk{{Path: folder + "/" + vm.ID + ".qcow2", Format: "qcow2", Bus: "virtio"}}
	}
	switch {
	case len(volumes) > 0:
		for _, order := range volumes {
			disks = append(disks, model.Disk{Pool: order.PoolName, Volume: order.Name, Format: order.Format, Bus: "virtio"})
		}
	case site.Local[vm.ID]:
		disks = file(machine.LocalFolder)
	case site.Wide:
		disks = file(machine.WideFolder)
	case shared:
		disks = file("/shared")
	}
	return disks
}
