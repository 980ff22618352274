package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// deleteVMKind is the kind of the command that deletes a VM.
const deleteVMKind = "delete vm"

// DeleteVM forgets a stopped VM, and with it its disks that are volumes unless they are to be kept. Disks that are files are
// not Berth's and stay. A VM without a volume to remove goes at once, and the operation has no ID; else the operation tells
// when it has gone. Until then its disks cannot be used: deleting it again finishes what went wrong. Refusals are of type
// *Error.
func (l *Lifecycle) DeleteVM(ctx context.Context, request DeleteVM) (operation.Operation, error) {
	var op operation.Operation
	err := l.InTurn(ctx, "vm/"+request.VM, func() (again lead.Retry, err error) {
		op, again, err = l.deleteOnce(ctx, request)
		return again, err
	})
	return op, err
}

func (l *Lifecycle) deleteOnce(ctx context.Context, request DeleteVM) (operation.Operation, lead.Retry, error) {
	if !l.Leading() {
		return operation.Operation{}, lead.Decided, lead.ErrNotLeading
	}
	snapshot := l.Store.Snapshot()
	if op, repeated := OperationOf(snapshot, request.RequestID); repeated {
		return op, lead.Decided, nil
	}
	vm, exists := snapshot.VM(request.VM)
	if !exists {
		if request.RequestID != "" && snapshot.Answered(request.RequestID, deleteVMKind) {
			return operation.Operation{}, lead.Decided, nil
		}
		return operation.Operation{}, lead.Decided, &lead.Error{
			Code: lead.NotFound, Subject: "vm/" + request.VM, Message: fmt.Sprintf("there is no VM %q", request.VM), NextStep: "see 'berth vm list'",
		}
	}
	if err := l.deletable(snapshot, vm); err != nil {
		return operation.Operation{}, lead.Decided, err
	}
	parts, err := partsOf(snapshot, vm, request.KeepDisks)
	if err != nil {
		return operation.Operation{}, lead.Decided, err
	}
	if len(parts.volumes) > 0 {
		if err := lead.Quarantined(snapshot); err != nil {
			return operation.Operation{}, lead.Decided, err
		}
		return l.deleteWithVolumes(ctx, snapshot, vm, parts, request)
	}
	command := l.Command(deleteVMKind, request.RequestID, request.Caller)
	command.Expect = []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}
	command.Delete = []state.Record{{Table: state.VMs, ID: vm.ID}}
	for _, disk := range parts.disks {
		lead.Remove(&command, disk)
	}
	command.Events = []model.Event{{
		At: command.At, Kind: "vm.deleted", Subject: "vm/" + vm.Name, Message: "forgotten; its disks stay where they are", Caller: request.Caller,
	}}
	_, again, err := l.ProposeOnce(ctx, command, "vm/"+vm.Name)
	return operation.Operation{}, again, err
}

// deletable refuses to forget a VM that runs or may run.
func (l *Lifecycle) deletable(snapshot *state.Snapshot, vm model.VM) error {
	subject := "vm/" + vm.Name
	switch {
	case vm.Operation != "":
		return lead.VMBusy(snapshot, vm)
	case vm.Holder != "":
		return &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("VM %q is not stopped: node %s holds "+
				"it", vm.Name, lead.NodeName(snapshot, vm.Holder)),
			NextStep: fmt.Sprintf("stop it first: 'berth vm stop %s'", vm.Name),
		}
	case len(vm.Discards) > 0:
		name := lead.NodeName(snapshot, vm.Discards[0].Node)
		return &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf(
				"a migration has left a paused copy of VM %q on %s, which goes when that node answers", vm.Name, name,
			),
			NextStep: fmt.Sprintf("bring %s back, or say so if its machine is off: 'berth node fence %s --confirmed-off'", name, name),
		}
	}
	answer := l.fencing.Survey(snapshot).Verdict(&vm, "")
	var names []string
	for _, word := range answer.InTheWay() {
		if word.Standing == evidence.ShowsIt {
			names = append(names, word.Name)
		}
	}
	if err := noCopies(snapshot, vm, "deleted"); err != nil {
		return err
	}
	missing, next := answer.Missing()
	switch {
	case len(names) == 0 && !answer.May:
		return &lead.Error{
			Code: lead.Conflict, Subject: subject,
			Message: fmt.Sprintf("VM %q may run still, and its disks would be gone: %s", vm.Name, missing), NextStep: next,
		}
	case len(names) > 0:
		return &lead.Error{
			Code: lead.Conflict, Subject: subject,
			Message:  fmt.Sprintf("a domain with the UUID of VM %q runs on %s", vm.Name, strings.Join(names, ", ")),
			NextStep: fmt.Sprintf("shut it down there with 'virsh shutdown %s'", vm.Name),
		}
	}
	return nil
}

// parts are what goes with a VM.
type parts struct {
	disks   []model.Resource    // their records
	volumes []model.VolumeOrder // that are there
	nodes   []string            // IDs of those that have them, of local pools
}

func partsOf(snapshot *state.Snapshot, vm model.VM, keep bool) (parts, error) {
	var found parts
	seed, there, err := estate.VolumesOf(snapshot, vm, nil)
	if err != nil {
		return parts{}, Unlinked(vm, err)
	}
	found.volumes = seed
	for _, id := range vm.Disks {
		disk, known := snapshot.Resource(id)
		if !known || !estate.IsVolume(&disk) {
			continue
		}
		at := slices.IndexFunc(there, func(order model.VolumeOrder) bool { return order.Disk == id })
		goes := !keep && !estate.Kept(&disk)
		if goes {
			found.disks = append(found.disks, disk)
		}
		if at < 0 && goes && disk.Volume != nil { // of a VM with a document: it was made while that ran
			order, err := estate.DiskOrder(snapshot, disk, disk.Volume.Pool)
			if err != nil {
				return parts{}, Unlinked(vm, err)
			}
			at, there = len(there), append(there, order)
		}
		if at < 0 || !goes && len(seed) == 0 {
			continue
		}
		if goes {
			found.volumes = append(found.volumes, there[at])
		}
		for _, node := range disk.Volume.Nodes {
			if !slices.Contains(found.nodes, node) && (goes || there[at].Pool == seed[0].Pool) {
				found.nodes = append(found.nodes, node)
			}
		}
	}
	return found, nil
}

func (l *Lifecycle) deleteWithVolumes(
	ctx context.Context, snapshot *state.Snapshot, vm model.VM, parts parts, request DeleteVM,
) (operation.Operation, lead.Retry, error) {
	node, err := l.volumes.Remover(snapshot, vm, parts.volumes, parts.nodes)
	if err != nil {
		return operation.Operation{}, lead.Decided, err
	}
	at := l.Now()
	op := operation.Operation{
		ID: l.NewID(), Kind: operation.Delete, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
		Source: node, SourceName: lead.NodeName(snapshot, node), Leftover: node, Epoch: vm.EpochsGiven(),
		Phase: operation.Clearing, Step: 1, Attempt: 1, Replaced: parts.volumes, CreatedAt: at, UpdatedAt: at,
	}
	first := First{Revision: vm.Revision}
	for _, disk := range parts.disks {
		op.Disks = append(op.Disks, disk.ID)
		if disk.Volume != nil && !disk.Volume.Doomed {
			disk.Volume.Doomed = true
		}
		first.changed = append(first.changed, disk)
	}
	vm.Operation = op.ID
	first.Next = operation.Next{Operation: op, VM: vm}
	started, again, err := l.BeginOperation(ctx, first)
	return started.Operation, again, err
}
