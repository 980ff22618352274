package operation

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
)

// When a migration with disks has lost its VM, nobody has seen its disks since: their machine may have died with them. So those of the
// other node stay: the copies on the target, or after the hand-over what they were copied from on the source. The record of the VM has
// them, until the VM has run with its disks again or somebody has decided.

// leaveCopies keeps the volumes on the target. Whole tells that all of the disks was there.
func (t *transition) leaveCopies(whole bool) {
	op := &t.Operation
	if len(op.Volumes) == 0 || t.VM.Copies != nil {
		return
	}
	t.VM.Copies = &model.DiskCopies{Operation: op.ID, Node: op.Target, Volumes: slices.Clone(op.Volumes), Whole: whole}
}

// leaveReplaced keeps the volumes on the source of a VM that was handed over, and says where they are and which words end that. What it
// has written on the target they do not have.
func (t *transition) leaveReplaced() string {
	op := &t.Operation
	t.VM.Copies = &model.DiskCopies{Operation: op.ID, Node: op.Source, Volumes: slices.Clone(op.Replaced), Whole: true, Source: true}
	source, target := t.name(op.Source), t.name(op.Target)
	return fmt.Sprintf(
		"its disks are on %s, and those from before the move on %s, which go once it has run on %s; 'berth operation resolve %s --keep "+
			"source' makes these its disks, without what it wrote on %s, and '--keep target' removes them", target, source, target, op.ID, target,
	)
}

// copiesLeft says where the copies are, and which words end that.
func (t *transition) copiesLeft() string {
	op := &t.Operation
	source, target := t.name(op.Source), t.name(op.Target)
	if t.VM.Copies.Whole {
		return fmt.Sprintf(
			"its disks are on %s, and whole copies of them on %s, which go once it has run on %s; 'berth operation resolve %s --keep target' "+
				"makes the copies its disks, and '--keep source' removes them", source, target, source, op.ID,
		)
	}
	return fmt.Sprintf(
		"its disks are on %s, and copies of them on %s, perhaps incomplete, which go once it has run on %s; 'berth operation resolve %s "+
			"--keep source' removes them", source, target, source, op.ID,
	)
}
