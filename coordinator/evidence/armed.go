package evidence

import (
	"maps"
	"sync"

	"berth/coordinator/model"
)

// Paused tells whether somebody has said that nothing is fenced or restarted by itself, and who.
func (m Moment) Paused() (model.HAPause, bool) {
	return model.HAPauseOf(m.Meta(model.MetaHAPause), m.At)
}

// Guarded are the nodes, by ID, whose silence must be able to prove something: those that a VM which is to be highly available runs
// on, or is on its way to. The watchdog of any other node would only reset a machine for nobody. While high availability is paused
// there are none.
func (m Moment) Guarded() map[string]bool {
	guarded := map[string]bool{}
	if _, paused := m.Paused(); paused {
		return guarded
	}
	for _, vm := range m.VMsMarked(model.MarkGuarded) {
		if vm.Holder != "" {
			guarded[vm.Holder] = true
		}
	}
	maps.Copy(guarded, m.guardedOnTheWay())
	return guarded
}

// guardedOnTheWay are the nodes, by ID, that VMs which are to be highly available leave or go to.
func (m Moment) guardedOnTheWay() map[string]bool {
	nodes := map[string]bool{}
	for _, op := range m.LiveOperations() {
		if vm, _ := m.VM(op.VM); vm.Guarded() {
			nodes[op.Source], nodes[op.Target] = true, true
		}
	}
	delete(nodes, "")
	return nodes
}

// Guards tells of single nodes whether they are among those.
func (m Moment) Guards() func(node string) bool {
	if _, paused := m.Paused(); paused {
		return func(string) bool { return false }
	}
	onTheWay := sync.OnceValue(m.guardedOnTheWay)
	return func(node string) bool {
		for vm := range m.SharedVMsOn(node) {
			if vm.Desired == model.Running && vm.Guarded() {
				return true
			}
		}
		return onTheWay()[node]
	}
}
