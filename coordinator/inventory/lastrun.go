package inventory

import (
	"maps"
	"slices"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// tellLastRuns takes in what guests ran with that are gone or off, by an inventory that has just come. The caller holds the lock.
func (s *Store) tellLastRuns(id string, n *node, report *berthv1.InventoryReport) {
	if report.GetDomainsUnknown() {
		return
	}
	before := n.lastRuns
	n.lastRuns = make(map[string]model.LastRun)
	for vm := range before {
		s.ranOn(vm, id, false)
	}
	for _, wire := range report.GetDomains() {
		vm := wire.GetUuid()
		run, told := lastRunOf(wire)
		if !told || vm == "" {
			continue
		}
		n.lastRuns[vm] = run
		s.ranOn(vm, id, true)
		if was, known := before[vm]; !known || was.Epoch != run.Epoch || !slices.Equal(was.Devices, run.Devices) {
			s.lookAt(id, vm, run.Epoch)
		}
	}
}

// tellLastRun takes in what one guest ran with, or that nothing says so any more. The caller holds the lock.
func (s *Store) tellLastRun(id string, n *node, wire *berthv1.Domain) {
	vm := wire.GetUuid()
	run, told := lastRunOf(wire)
	if _, known := n.lastRuns[vm]; vm == "" || !told && !known || isFull(n.lastRuns, vm) {
		return
	}
	next := make(map[string]model.LastRun, len(n.lastRuns)+1)
	maps.Copy(next, n.lastRuns)
	delete(next, vm)
	s.ranOn(vm, id, told)
	if told {
		next[vm] = run
		s.lookAt(id, vm, run.Epoch)
	}
	n.lastRuns = next
}

// ranOn notes whether a node tells what a guest ran with there. The caller holds the lock.
func (s *Store) ranOn(vm, node string, told bool) {
	nodes := slices.DeleteFunc(s.ran[vm], func(other string) bool { return other == node })
	if told {
		nodes = append(nodes, node)
	}
	if s.ran[vm] = nodes; len(nodes) == 0 {
		delete(s.ran, vm)
	}
}

// RanOn are the IDs of the nodes that tell what a guest ran with there before it was gone, the one that has told it last at the end.
func (s *Store) RanOn(uuid string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.ran[uuid])
}

func lastRunOf(wire *berthv1.Domain) (model.LastRun, bool) {
	told := wire.GetLastRun()
	if told == nil || stateOf(wire).Holds() {
		return model.LastRun{}, false
	}
	run := model.LastRun{Epoch: EpochOf(told.GetEpoch()), Devices: DevicesFrom(told.GetDevices())}
	return run, run.Devices != nil
}
