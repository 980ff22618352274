package control

import (
	"maps"
	"slices"

	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// settleDisks puts into a command what becomes of disks with an operation's step.
func (c *Control) settleDisks(command *state.Command, next operation.Next) {
	snapshot := c.Store.Snapshot()
	for _, id := range slices.Sorted(maps.Keys(next.Volumes)) {
		if disk, there := snapshot.Resource(id); there {
			command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: id, Revision: disk.Revision})
			volume := next.Volumes[id]
			disk.Volume = &volume
			command.Resources = append(command.Resources, disk)
		}
	}
	for _, id := range next.DeleteDisks {
		if disk, there := snapshot.Resource(id); there {
			command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: id, Revision: disk.Revision})
			command.Delete = append(command.Delete, state.Record{Table: state.Resources, ID: id})
		}
	}
}
