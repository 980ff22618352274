package drift

import (
	"berth/coordinator/binding"
	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// LocalDisk is a disk that a VM is started with and that other nodes may not have, by name; empty: there is none. What is in the folder of
// a pool that is declared as shared is seen by all nodes of its cluster, and what comes over a network by all. A file of the same path on
// another node is another file, as long as nobody has said otherwise. Facts are of a node of the cluster.
func LocalDisk(source estate.Facts, vm *model.VM, cluster string, facts *model.NodeFacts) (string, error) {
	devices, err := Baseline(source, vm)
	if err != nil {
		return "", err
	}
	shared := binding.SharedPools(source, cluster)
	own := map[model.DiskSource]bool{} // volumes of which their own records say where they are; one of such a name in another pool is none
	for _, id := range vm.Disks {
		if disk, known := source.Resource(id); known && disk.Volume != nil && vm.Spec.XML == "" { // no disk goes along with a document
			pool, _ := source.Resource(disk.Volume.Pool)
			own[model.DiskSource{Pool: model.PoolSettingsOf(&pool).Source, Volume: disk.Volume.Name}] = true
		}
	}
	for _, disk := range binding.Written(devices, vm) {
		if disk.Path == "" && (disk.Volume == "" || own[disk] || shared[disk.Pool]) {
			continue
		}
		if !binding.InShared(shared, disk, facts) {
			return disk.Text(), nil
		}
	}
	return "", nil
}
