package lifecycle

import (
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// parallelStarts is how many VMs may start at a time on the node with this ID.
func parallelStarts(snapshot *state.Snapshot, node string) int {
	record, _ := snapshot.Node(node)
	inside, _ := estate.ClusterNamed(snapshot, record.ClusterName())
	return model.SettingsOf(&inside).ParallelStarts
}

// behind is operation.Behind of a node. More are those starts that have been decided on the same snapshot.
func behind(snapshot *state.Snapshot, node string, more int) int {
	working, queue := snapshot.StartsOn(node)
	return operation.Behind(working, len(queue)+more, parallelStarts(snapshot, node))
}

// mayBegin tells whether the turn of a queued start has come, and whether it never comes because its node answers no starts.
func mayBegin(snapshot *state.Snapshot, op *operation.Operation) (turn, never bool) {
	working, queue := snapshot.StartsOn(op.Target)
	node := snapshot.SharedNode(op.Target)
	return operation.HasTurn(op.ID, working, queue, parallelStarts(snapshot, op.Target)), node != nil && node.Unanswered.Holds()
}

// wakeQueued wakes the queued starts of a node whose turn has come.
func (o *Operations) wakeQueued(node string) {
	snapshot := o.Store.Snapshot()
	working, queue := snapshot.StartsOn(node)
	free := min(max(parallelStarts(snapshot, node)-working, 0), len(queue))
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range queue[:free] {
		if r := o.runners[id]; r != nil {
			r.wake()
		}
	}
}

// leavesStart tells whether a step makes room for another start on the operation's node.
func leavesStart(before, after *operation.Operation) bool {
	starts := before.Kind == operation.Start && (before.Phase == operation.Dispatched || before.Phase == operation.Queued)
	return starts && after.Phase != before.Phase && after.Phase != operation.Dispatched
}
