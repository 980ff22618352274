package operation

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
)

// New disks. One that is made for a guest that runs has a record from the beginning on, which the VM links to, with a volume that nothing
// may use yet. When the guest has it, it may. A node that answers with a failure has removed the volume, and the record goes as well. When
// nobody can tell, the record stays with a volume that is to be removed, so that nothing in a pool is without a record.

// withNewDisk is a kind of operation that may make a disk.
func withNewDisk(k kind) kind {
	now := k.phases[Dispatched]
	answered, off, overdue, unbegun := now.answered, now.off, now.overdue, now.unbegun
	now.answered = func(t *transition, answer Answer) bool {
		made := t.Operation.Volumes
		if !answered(t, answer) {
			return false
		}
		switch answer.Outcome {
		case OutcomeDone:
			given(t, made)
		case OutcomeFailed:
			unmade(t)
		default: // an earlier life of the agent may have begun it
			doomed(t, made)
		}
		return true
	}
	now.off = func(t *transition) bool {
		made := t.Operation.Volumes
		ended := off(t)
		if ended {
			doomed(t, made)
		}
		return ended
	}
	now.overdue = func(t *transition, waited time.Duration) bool {
		made := t.Operation.Volumes
		ended := overdue(t, waited)
		if ended {
			doomed(t, made)
		}
		return ended
	}
	now.unbegun = func(t *transition) {
		unbegun(t)
		unmade(t)
	}
	k.phases[Dispatched] = now
	return k
}

// given are new disks that the guest has from now on.
func given(t *transition, volumes []model.VolumeOrder) {
	for i := range volumes {
		order := &volumes[i]
		volume := model.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity}
		if !order.Shared {
			volume.Nodes = []string{t.Operation.Source}
		}
		if t.Volumes == nil {
			t.Volumes = make(map[string]model.Volume, len(volumes))
		}
		t.Volumes[order.Disk] = volume
	}
}

// unmade takes back the records of disks of which no node has anything.
func unmade(t *transition) {
	unlink(t, t.Operation.Disks...)
	t.DeleteDisks = t.Operation.Disks
}

// doomed leaves the records of disks of which a node may have something: with them it is removed.
func doomed(t *transition, volumes []model.VolumeOrder) {
	unlink(t, t.Operation.Disks...)
	for i := range volumes {
		t.Operation.Message += fmt.Sprintf("; next step: 'berth disk delete %s' removes what there is of the new disk", volumes[i].DiskName)
	}
}

func unlink(t *transition, disks ...string) {
	if len(disks) > 0 {
		t.VM.Disks = slices.DeleteFunc(slices.Clone(t.VM.Disks), func(id string) bool { return slices.Contains(disks, id) })
	}
}

// unlinking is a kind of operation that may take a disk from a guest which was made for it while it ran. The VM does not link to it any
// more then: else its next start would have it again.
func unlinking(k kind) kind {
	done := k.done
	k.done = func(t *transition) {
		for _, edit := range t.Operation.Edits {
			for _, has := range t.VM.Edits() {
				if edit.Is == "" && has.Names(edit.Kind, edit.Key) {
					unlink(t, disksOf(&t.VM, has.Source)...)
				}
			}
		}
		done(t)
	}
	return k
}

// disksOf are the disks that a VM links to whose volume this is.
func disksOf(vm *model.VM, source model.DiskSource) (disks []string) {
	for _, id := range vm.Disks {
		if source.Volume == model.VolumeName(id, model.DiskFormat) {
			disks = append(disks, id)
		}
	}
	return disks
}
