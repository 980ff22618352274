// Package promised counts what Berth promises of a site: how much memory of each node is given away, and how many nodes may be silent.
package promised

import (
	"berth/coordinator/state"
	"berth/shared/units"
)

// Memory is what is promised to VMs on each node, by the records.
func Memory(snapshot *state.Snapshot) map[string]units.Bytes {
	used := map[string]units.Bytes{}
	for _, vm := range snapshot.VMs() {
		if vm.Holder != "" {
			used[vm.Holder] += vm.Spec.Memory
		}
	}
	for _, op := range snapshot.LiveOperations() {
		if reservation, holds := op.Reservation(); holds {
			if vm, _ := snapshot.VM(op.VM); vm.Holder != reservation.Node {
				used[reservation.Node] += reservation.Memory
			}
		}
	}
	return used
}

// Add counts what the operations of a command that is not in the log yet promise to other nodes than before.
func Add(used map[string]units.Bytes, snapshot *state.Snapshot, command *state.Command) {
	for i := range command.Operations {
		op := &command.Operations[i]
		was, _ := snapshot.Operation(op.ID)
		if reservation, holds := op.Reservation(); holds && was.Target != op.Target {
			used[reservation.Node] += reservation.Memory
		}
	}
}
