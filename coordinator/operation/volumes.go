package operation

import (
	"strings"

	"berth/coordinator/model"
)

// Volumes. An agent that answers a start or a preparation with a failure has removed the volumes that it made. When the
// answer is in doubt, they are cleared before anything else happens.

// made records where the new volumes are, in the command that records the VM's node.
func (t *transition) made() {
	op := &t.Operation
	for i := range op.Volumes {
		order := &op.Volumes[i]
		if order.Disk == "" {
			continue // a seed image follows from the VM
		}
		volume := model.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Backing: order.BackedIn}
		if !order.Shared {
			volume.Nodes = []string{op.Target}
		}
		if t.Volumes == nil {
			t.Volumes = make(map[string]model.Volume, len(op.Volumes))
		}
		t.Volumes[order.Disk] = volume
	}
	op.Volumes = nil
}

// clear has a node remove the operation's volumes there.
func (t *transition) clear(node string) {
	t.Operation.Leftover = node
	t.enter(Clearing)
}

// cleared is the volumes that phase Clearing removes.
func (o *Operation) cleared() []model.VolumeOrder {
	if o.Leftover == o.Source {
		return o.Replaced
	}
	return o.Volumes
}

// clearAnswered continues once the volumes are removed.
func clearAnswered(t *transition, answer Answer) bool {
	if answer.Outcome != OutcomeDone && answer.Code != StaleEpoch {
		return false // asked again until they are gone
	}
	// With a stale epoch, somebody has begun again there since, and made or removed volumes with these names.
	t.noteAnswer(answer)
	t.kind.cleared(t)
	return true
}

// clearOff continues when the node that has volumes to remove is off.
func clearOff(t *transition) bool {
	t.clearedInVain(off)
	return true
}

// clearedInVain continues without the node that has volumes to remove. Volumes on a migration's source are named in the VM's
// condition, because they take up room that no record mentions.
func (t *transition) clearedInVain(why string) {
	op := &t.Operation
	left := stay(op.cleared())
	t.note("%s %s: %s", t.name(op.Leftover), why, left)
	if op.Leftover == op.Source {
		t.VM.Condition = model.Condition{
			Kind: model.VolumesLeft, About: op.Source, Text: "on " + t.name(op.Source) + ", where it was, " + left,
		}
	}
	t.kind.cleared(t)
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
