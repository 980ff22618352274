package operation

import (
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
)

// DiscardPatience is how long an operation waits for a silent node that still has to remove something. After that it
// continues without the node. A paused leftover there cannot run, because nobody will resume its epoch, and it is removed
// when the node answers again. Volumes there only take up room.
const DiscardPatience = 60 * time.Second

// Overdue ends what waits too long. It reports false when the operation may go on waiting. Two kinds wait until they are
// cancelled. A deletion waits because only its node can say that nothing is left. So does a start that made shared volumes,
// because the node might remove them after the next node has made them again.
func Overdue(op Operation, vm model.VM, at time.Time) (Next, bool) {
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
		t.VM.Discards = append(slices.Clone(vm.Discards), model.Discard{Node: op.Leftover, Epoch: op.leftoverEpoch()})
		t.discardedInVain(silent, "its leftover stays until it answers, paused, and nobody will resume it")
	default:
		return Next{}, false
	}
	return t.Next, true
}

// silent says why an operation goes on without a node.
const silent = "did not answer for 1m0s" // DiscardPatience

// discardedInVain continues without the node that has a leftover to discard.
func (t *transition) discardedInVain(why, left string) {
	op := &t.Operation
	if op.Leftover == op.Target && len(op.Volumes) > 0 {
		left += "; " + stay(op.Volumes)
	}
	t.note("%s %s: %s", t.name(op.Leftover), why, left)
	t.discarded()
}

// clearedInVain continues without the node that has volumes to remove. Volumes on a migration's source are named in the VM's
// condition, because they take up room that no record mentions.
func (t *transition) clearedInVain(why string) {
	op := &t.Operation
	left := stay(op.cleared())
	t.note("%s %s: %s", t.name(op.Leftover), why, left)
	if op.Kind == Migrate && op.Leftover == op.Source {
		t.VM.Condition = model.Condition{
			Kind: model.VolumesLeft, About: op.Source, Text: "on " + t.name(op.Source) + ", where it was, " + left,
		}
	}
	t.cleared()
}

func isShared(volume model.VolumeOrder) bool { return volume.Shared }

// stay names the volumes that are left.
func stay(volumes []model.VolumeOrder) string {
	if len(volumes) == 1 {
		return "the volume " + named(volumes) + " may be left: remove it by hand"
	}
	return "the volumes " + named(volumes) + " may be left: remove them by hand"
}

func named(volumes []model.VolumeOrder) string {
	names := make([]string, 0, len(volumes))
	for i := range volumes {
		names = append(names, volumes[i].Name+" of pool "+volumes[i].PoolName)
	}
	return strings.Join(names, ", ")
}
