package evidence

import (
	"time"

	"berth/coordinator/model"
)

// Again tells of a VM without HA whether it is started again by itself: it ran when its host lost its power, that host is back, and its
// cluster wants it. Whatever else has ended it is for people to judge.
func Again(r Records) func(*model.VM) bool {
	wanted := map[string]bool{}
	for _, record := range r.Clusters() {
		wanted[record.Name] = model.SettingsOf(&record).Restart == model.RestartAlways
	}
	return func(vm *model.VM) bool {
		node, known := r.Node(vm.LastNode)
		if set, declared := wanted[node.ClusterName()]; declared && !set || !known || node.Fenced() {
			return false
		}
		return vm.Condition.Is(model.HostBooted, model.HolderOff, model.StorageLate, model.RestartRefused, model.RestartRests)
	}
}

// storageRest is before a VM is tried again whose storage was not there.
const storageRest = 10 * time.Second

// storageIsLate tells that a VM was tried a moment ago and had no storage. That is no failure of the VM: it is tried until the storage is
// there.
func storageIsLate(vm *model.VM, now time.Time) bool {
	return vm.Condition.Is(model.StorageLate) && now.Sub(vm.RestartedAt) < storageRest && !now.Before(vm.RestartedAt)
}
