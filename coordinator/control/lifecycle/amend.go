package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/control/drifts"
	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/domxml"
)

// amending checks a change of devices that somebody asks for, and writes it into the operation under that person's name.
func amending(now scene, op *operation.Operation, vm *model.VM, request ActOnVM) error {
	snapshot := now.snapshot
	if snapshot.FeatureLevel() < state.DriftLevel {
		return notAllKnow(vm, fmt.Sprintf("%s devices", op.Kind))
	}
	if vm.Drift != nil && vm.Drift.Reverted {
		if vm.Holder != "" {
			return &lead.Error{
				Code: lead.Conflict, Subject: "vm/" + vm.Name,
				Message:  fmt.Sprintf("the next start of VM %q undoes what was changed of it beside Berth, and would undo this too", vm.Name),
				NextStep: fmt.Sprintf("stop and start it first, or keep what was changed with 'berth vm accept %s'", vm.Name),
			}
		}
		vm.Drift = nil // that is what its next start does
	}
	for _, edit := range request.Edits {
		names := vm.SnapshotsOf(edit.Key)
		if op.Kind == operation.Detach && edit.Kind == string(domxml.DiskDevice) && len(names) > 0 {
			return snapshotRefused(vm, fmt.Sprintf("delete them first: 'berth vm snapshot delete %s --name %s'", vm.Name, names[0]),
				"disk %s of VM %q has snapshots (%s), which nobody could revert to without it", edit.Key, vm.Name, strings.Join(names, ", "))
		}
	}
	op.Edits = slices.Clone(request.Edits)
	for i := range op.Edits {
		op.Edits[i].By, op.Edits[i].At = request.Caller, op.CreatedAt
	}
	after := *vm
	after.Amend(op.Edits, vm.Holder, op.CreatedAt)
	if changes := after.Drifted(); len(changes) > model.MaxDriftEdits {
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message:  fmt.Sprintf("VM %q has %d changed devices, and %d is the most", vm.Name, len(vm.Drifted()), model.MaxDriftEdits),
			NextStep: fmt.Sprintf("'berth vm accept %s', or detach some", vm.Name),
		}
	}
	if err := drifts.Unused(snapshot, now.survey, vm, op.Edits); err != nil {
		return err
	}
	if vm.Ran == nil && vm.Holder != "" { // started by an earlier release: what it ran with is what its record says
		baseline, err := drift.Baseline(snapshot, vm)
		if err != nil {
			return Unlinked(*vm, err)
		}
		vm.Ran = operation.Ran(baseline)
	}
	return nil
}

// notAllKnow refuses what coordinators of an earlier release would not understand.
func notAllKnow(vm *model.VM, what string) error {
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: "not all coordinators know how to " + what,
		NextStep: "see 'berth coordinator list', and update those of an earlier release",
	}
}
