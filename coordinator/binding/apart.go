package binding

import (
	"cmp"
	"maps"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/domxml"
)

// Apart are the nodes that do not have a VM's disks although its pool is declared as shared: what they have under its name was proven to
// be another one than that of the node which runs the VM, or ran it last. None: nothing is proven, and the declaration counts. Cluster is
// where the VM is to be.
func Apart(records Records, apart model.PoolsApart, vm *model.VM, cluster string) []placement.Apart {
	home := cmp.Or(vm.Holder, vm.LastNode)
	if len(apart) == 0 || home == "" {
		return nil
	}
	var found []placement.Apart
	for _, id := range slices.Sorted(maps.Keys(apart)) {
		pool := apart[id]
		record, _ := records.Resource(id)
		if left, has := pool.Left[home]; has && !vm.CameAt().After(left) {
			continue // its mount was lost since, perhaps: what it has there now is not what the VM has its disks on
		}
		if pool.Sides[home] == "" || clusterOf(records, &record) != cluster || !liesIn(records, vm, id, pool) {
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(pool.Sides)) {
			named := slices.ContainsFunc(found, func(one placement.Apart) bool { return one.Node == node })
			if pool.Apart(home, node) && !named {
				found = append(found, placement.Apart{Node: node, Why: pool.Why(home, node)})
			}
		}
	}
	return found
}

// liesIn tells whether a VM has a disk in a pool: a volume, or a file in its folder.
func liesIn(records Records, vm *model.VM, id string, pool *model.PoolApart) bool {
	for _, disk := range vm.Disks {
		record, _ := records.Resource(disk)
		if record.Volume != nil && record.Volume.Pool == id {
			return true
		}
	}
	devices, _ := operation.Devices(&vm.Spec, vm.ID) // a description that cannot be read is refused where it is used
	inside := func(source model.DiskSource) bool {
		if source.Path == "" {
			return source.Pool == pool.Source
		}
		return inFolder(source.Path, pool.Folder)
	}
	return slices.ContainsFunc(Written(devices, vm), inside)
}

// Written are the sources that a VM writes to, or perhaps reads as what one of them is a thin copy of: those of its record, and those
// that it ran with last.
func Written(devices []domxml.Device, vm *model.VM) (sources []model.DiskSource) {
	for _, one := range devices {
		if one.Kind == domxml.DiskDevice && !one.ReadOnly && !one.Media {
			sources = append(sources, model.DiskSource(one.Source))
		}
	}
	for _, edit := range vm.Drifted() {
		if edit.Kind == string(domxml.DiskDevice) && edit.Is != "" && !edit.Media && (vm.Holder != "" || !vm.Drift.Reverted) {
			sources = append(sources, edit.Source)
		}
	}
	return sources
}
