package operation

import (
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
)

// DiscardPatience is how long an operation waits for a silent node that has something left to remove, before it goes on
// without. A paused leftover there cannot run: nobody will resume its epoch, and it goes when the node answers again. Volumes
// there only take room.
const DiscardPatience = 60 * time.Second

// Overdue ends what waits in vain. It reports false when the operation may go on waiting. Until they are cancelled, a
// deletion waits for its node, because only then is it known that nothing is left, and so does a start that made shared
// volumes: the node might still remove them when the next one has made them anew.
func Overdue(op Operation, vm cluster.VM, at time.Time) (Next, bool) {
	if !op.Live() || op.Result == Parked {
		return Next{}, false
	}
	t := newTransition(op, vm, at)
	late := at.Sub(op.UpdatedAt) >= DiscardPatience
	switch {
	case op.marks() && (op.Cancel || at.Sub(op.UpdatedAt) >= MarkPatience):
		t.markInVain()
	case op.resolved() && (op.Phase == Discarding && late || op.Phase == Marking && at.Sub(op.UpdatedAt) >= MarkPatience):
		t.parkAgain("the nodes have not answered for " + at.Sub(op.UpdatedAt).Round(time.Second).String())
	case op.Phase == Clearing && op.Kind == Delete && op.Cancel:
		t.end(Failed, "cancelled while "+t.name(op.Leftover)+" removes its volumes: delete it again to finish that")
	case op.Phase == Clearing && op.Kind != Delete && late && (op.Kind != Start || op.Cancel || !slices.ContainsFunc(op.Volumes, isShared)):
		t.clearedInVain(silent)
	case op.Phase == Preparing && op.Cancel && late:
		t.note("%s %s: %s", t.name(op.Target), silent, stay(op.Volumes))
		t.end(Failed, "cancelled while "+t.name(op.Target)+" made volumes")
	case op.Phase == Discarding && !op.Revert && late:
		t.VM.Discards = append(slices.Clone(vm.Discards), cluster.Discard{Node: op.Leftover, Epoch: op.leftoverEpoch()})
		t.discardedInVain(silent, "its leftover stays until it answers, paused, and nobody will resume it")
	default:
		return Next{}, false
	}
	return t.Next, true
}

// silent says why an operation goes on without a node.
const silent = "did not answer for 1m0s" // DiscardPatience

// discardedInVain goes on without the node that has a leftover to discard.
func (t *transition) discardedInVain(why, left string) {
	op := &t.Operation
	if op.Leftover == op.Target && len(op.Volumes) > 0 {
		left += "; " + stay(op.Volumes)
	}
	t.note("%s %s: %s", t.name(op.Leftover), why, left)
	t.discarded()
}

// clearedInVain goes on without the node that has volumes to remove. Those of a source that is done are named at the VM:
// they take room that no record tells of.
func (t *transition) clearedInVain(why string) {
	op := &t.Operation
	left := stay(op.cleared())
	t.note("%s %s: %s", t.name(op.Leftover), why, left)
	if op.Kind == Migrate && op.Leftover == op.Source {
		t.VM.Condition = "on " + t.name(op.Source) + ", where it was, " + left
	}
	t.cleared()
}

func isShared(volume cluster.VolumeOrder) bool { return volume.Shared }

// stay names volumes that are left.
func stay(volumes []cluster.VolumeOrder) string {
	if len(volumes) == 1 {
		return "the volume " + named(volumes) + " may be left: remove it by hand"
	}
	return "the volumes " + named(volumes) + " may be left: remove them by hand"
}

func named(volumes []cluster.VolumeOrder) string {
	names := make([]string, 0, len(volumes))
	for i := range volumes {
		names = append(names, volumes[i].Name+" of pool "+volumes[i].PoolName)
	}
	return strings.Join(names, ", ")
}
