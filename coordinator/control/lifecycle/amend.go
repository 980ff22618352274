package lifecycle

import (
	"fmt"
	"slices"
	"strings"

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
	if err := diskUnused(now, vm, op.Edits); err != nil {
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

// diskUnused refuses a disk that somebody else has: a domain that runs, or another VM by its record. Two that write to one disk destroy
// what is on it.
func diskUnused(now scene, vm *model.VM, edits []model.DeviceEdit) error {
	snapshot := now.snapshot
	for _, edit := range edits {
		if edit.Kind != string(domxml.DiskDevice) || edit.Is == "" || edit.Media || isReadOnly(edit.XML) {
			continue
		}
		alone := model.VM{ID: vm.ID, Name: vm.Name, LastNode: vm.LastNode, Drift: &model.Drift{Edits: []model.DeviceEdit{edit}}}
		if err := disksFree(now, &alone, vm.Holder); err != nil {
			return err
		}
		for _, disk := range snapshot.Resources(model.KindDisk) {
			pool, _ := snapshot.Resource(volumePool(&disk))
			if disk.Volume != nil && disk.Volume.Name == edit.Source.Volume && model.PoolSettingsOf(&pool).Source == edit.Source.Pool {
				return &lead.Error{
					Code: lead.Conflict, Subject: "disk/" + disk.Name,
					Message:  fmt.Sprintf("volume %s is the disk %q of Berth, which is attached by its name", edit.Source.Text(), disk.Name),
					NextStep: fmt.Sprintf("'berth vm set %s --attach %s' gives it to the VM at its next start", vm.Name, disk.Name),
				}
			}
		}
		for _, live := range snapshot.LiveOperations() {
			with := func(e model.DeviceEdit) bool {
				return e.Kind == edit.Kind && e.Is != "" && !e.Media && e.Source == edit.Source
			}
			if live.VM != vm.ID && slices.ContainsFunc(live.Edits, with) {
				return &lead.Error{
					Code: lead.Conflict, Subject: "vm/" + live.VMName, Operation: live.ID,
					Message:  fmt.Sprintf("disk %s is being attached to VM %q: two writers destroy what is on it", edit.Source.Text(), live.VMName),
					NextStep: fmt.Sprintf("see 'berth operation show %s'", live.ID),
				}
			}
		}
		for _, other := range snapshot.VMs() {
			near := other.LastNode == vm.LastNode || edit.Source.Path == ""
			if other.ID != vm.ID && near && hasDisk(snapshot, &other, edit.Source) {
				return &lead.Error{
					Code: lead.Conflict, Subject: "vm/" + other.Name,
					Message:  fmt.Sprintf("disk %s is one of VM %q: two that write to it destroy what is on it", edit.Source.Text(), other.Name),
					NextStep: fmt.Sprintf("detach it there first: 'berth vm show %s' names it", other.Name),
				}
			}
		}
	}
	return nil
}

// isReadOnly tells whether a guest cannot write to the disk of an element.
func isReadOnly(element string) bool {
	found, err := domxml.DeviceOf(element)
	return err == nil && found.ReadOnly
}

func volumePool(disk *model.Resource) string {
	if disk.Volume == nil {
		return ""
	}
	return disk.Volume.Pool
}

// hasDisk tells whether a VM is started with a disk that it may write to, as its record names it.
func hasDisk(snapshot *state.Snapshot, vm *model.VM, source model.DiskSource) bool {
	baseline, _ := drift.Baseline(snapshot, vm) // links that lead nowhere have no disks
	for i := range baseline {
		gone := slices.ContainsFunc(vm.Edits(), func(e model.DeviceEdit) bool { return e.Names(string(baseline[i].Kind), baseline[i].Key) })
		if !gone && !baseline[i].ReadOnly && !baseline[i].Media && model.DiskSource(baseline[i].Source) == source {
			return true
		}
	}
	return slices.ContainsFunc(vm.Edits(), func(e model.DeviceEdit) bool { return !e.Media && e.Source == source })
}
