package control

import (
	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// parallelStarts is how many VMs may start at a time on the node with this ID.
func parallelStarts(snapshot *state.Snapshot, node string) int {
	record, _ := snapshot.Node(node)
	inside, _ := clusterNamed(snapshot, clusterOf(&record))
	return cluster.SettingsOf(&inside).ParallelStarts
}

// behind is how many starts come before another one on a node; 0: it may begin. More are those that have been decided on the
// same snapshot. A start that is queued is counted like one that has begun, so that nothing that is decided now can overtake
// it, and a queue that moves on meanwhile never makes more of them than may start at a time.
func behind(snapshot *state.Snapshot, node string, more int) int {
	working, queue := snapshot.StartsOn(node)
	if all := working + len(queue) + more; all >= parallelStarts(snapshot, node) {
		return all
	}
	return 0
}

// mayBegin tells whether the turn of a queued start has come.
func mayBegin(snapshot *state.Snapshot, op *operation.Operation) bool {
	working, queue := snapshot.StartsOn(op.Target)
	for at, id := range queue {
		if id == op.ID {
			return working+at < parallelStarts(snapshot, op.Target)
		}
	}
	return false
}

// callUp wakes the queued starts of a node whose turn has come.
func (c *Control) callUp(node string) {
	snapshot := c.Store.Snapshot()
	working, queue := snapshot.StartsOn(node)
	free := min(max(parallelStarts(snapshot, node)-working, 0), len(queue))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range queue[:free] {
		if r := c.runners[id]; r != nil {
			r.wake()
		}
	}
}

// leavesStart tells whether a step makes room for another start on the operation's node.
func leavesStart(before, after *operation.Operation) bool {
	starts := before.Kind == operation.Start && (before.Phase == operation.Dispatched || before.Phase == operation.Queued)
	return starts && after.Phase != before.Phase && after.Phase != operation.Dispatched
}
