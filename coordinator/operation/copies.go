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

// parkCopied parks a migration, and keeps the copies of disks on its target: whoever decides that neither guest is kept has not seen the
// disks on the source.
func parkCopied(t *transition, whole bool, why string) {
	if t.VM.Holder != t.Operation.Target {
		t.leaveCopies(whole)
	}
	t.park(why)
}

// noneKept ends a migration of which a person keeps neither guest. Nobody has seen the disks of either node since, so all of them stay.
func noneKept(t *transition) {
	op := &t.Operation
	message, had := op.Message, t.VM.Holder == op.Target
	t.VM.Desired, t.VM.Holder = model.Stopped, ""
	switch {
	case had && len(op.Replaced) > 0:
		message += "; " + t.leaveReplaced()
	case t.VM.Copies != nil:
		message += "; " + t.copiesLeft()
	}
	if t.VM.Copies != nil {
		t.VM.Condition = model.Condition{Kind: model.VolumesLeft, About: t.VM.Copies.Node, Text: message}
	}
	t.end(Failed, message)
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
