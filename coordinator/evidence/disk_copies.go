package evidence

import "berth/coordinator/model"

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
