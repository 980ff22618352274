package lifecycle

import (
	"maps"
	"slices"

	"berth/coordinator/control/lead"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// writeDisks puts into a command what becomes of disks with an operation's step.
func (o *Operations) writeDisks(command *state.Command, next operation.Next) {
	snapshot := o.Store.Snapshot()
	for _, id := range slices.Sorted(maps.Keys(next.Volumes)) {
		if disk, there := snapshot.Resource(id); there {
			volume := next.Volumes[id]
			disk.Volume = &volume
			lead.Change(command, disk)
		}
	}
	for _, id := range next.DeleteDisks {
		if disk, there := snapshot.Resource(id); there {
			lead.Remove(command, disk)
		}
	}
}
