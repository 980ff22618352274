package evidence

import (
	"cmp"
	"time"

	"berth/coordinator/model"
)

// Again tells of a VM that ran whether it is started again by itself. One without HA is if it ran when its host lost its power, that host
// is back, and it or its cluster wants that. Whatever else has ended it is for people to judge.
func Again(r Records) func(*model.VM) bool {
	restart := RestartOf(r)
	return func(vm *model.VM) bool {
		node, known := r.Node(vm.LastNode)
		switch wanted := restart(vm); {
		case wanted == model.RestartNever:
			return false
		case vm.HA:
			return true
		case wanted != model.RestartAlways || !known || node.Fenced():
			return false
		}
		return vm.Condition.Is(model.HostBooted, model.HolderOff, model.StorageLate, model.RestartRefused, model.RestartRests) ||
			vm.Condition.Is(model.RestartBehind)
	}
}

// RestartOf tells when a VM is started again by itself: as it says, or else as the cluster says that it runs or ran in last.
func RestartOf(r Records) func(*model.VM) model.Restart {
	clusters := map[string]model.Restart{}
	for _, record := range r.Clusters() {
		clusters[record.Name] = model.SettingsOf(&record).Restart
	}
	return func(vm *model.VM) model.Restart {
		node, _ := r.Node(cmp.Or(vm.Holder, vm.LastNode))
		return cmp.Or(vm.Restart, clusters[node.ClusterName()], model.RestartAlways)
	}
}

// storageRest is before a VM is tried again whose storage was not there.
const storageRest = 10 * time.Second

// storageIsLate tells that a VM was tried a moment ago and had no storage. That is no failure of the VM: it is tried until the storage is
// there.
func storageIsLate(vm *model.VM, now time.Time) bool {
	return vm.Condition.Is(model.StorageLate) && now.Sub(vm.RestartedAt) < storageRest && !now.Before(vm.RestartedAt)
}
