package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/schema"
	"berth/coordinator/state"
)

// withCopies is the VM of which an operation has left copies of disks.
func withCopies(snapshot *state.Snapshot, id string) (model.VM, bool) {
	for _, vm := range snapshot.VMsMarked(model.MarkCopies) {
		if vm.Copies.Operation == id {
			return vm, true
		}
	}
	return model.VM{}, false
}

// resolveCopies is an operator's word about copies of disks that a migration has left: they are the VM's disks from now on, or they go.
func (o *Operations) resolveCopies(
	ctx context.Context, snapshot *state.Snapshot, vm model.VM, request ResolveOperation,
) (lead.Retry, error) {
	refuse := func(code lead.Code, next, format string, args ...any) (lead.Retry, error) {
		return lead.Decided, &lead.Error{
			Code: code, Subject: "operation/" + request.ID, Operation: request.ID, Message: fmt.Sprintf(format, args...), NextStep: next,
		}
	}
	if err := lead.Quarantined(snapshot); err != nil {
		return lead.Decided, err
	}
	there := lead.NodeName(snapshot, vm.Copies.Node)
	copies, disks := vm.Copies.Side() // words that keep them, and what is the VM's now
	switch {
	case request.Keep != operation.KeepSource && request.Keep != operation.KeepTarget:
		return refuse(lead.Invalid, "give --keep source or target", "whose disks are to be kept is not said")
	case vm.Operation != "":
		return lead.Decided, lead.VMBusy(snapshot, vm)
	case request.Keep == copies && !vm.Copies.Whole:
		return refuse(lead.Conflict, "bring back the node that has its disks; --keep "+disks+" removes the copies",
			"the copies of the disks of VM %q on %s may be incomplete: nobody saw the end of copying", vm.Name, there)
	case request.Keep == copies && vm.Holder != "":
		return refuse(lead.Conflict, "keep the "+disks+"'s: the copies are removed",
			"VM %q runs on %s with the disks that it had", vm.Name, lead.NodeName(snapshot, vm.Holder))
	}
	if request.Keep == disks {
		limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
		defer cancel()
		if _, err := o.Agents.Perform(limited, vm.Copies.Node, lead.Task{Remove: vm.Copies.Volumes}); err != nil {
			return refuse(lead.Unavailable, "try again when "+there+" answers", "the copies on %s could not be removed: %v", there, err)
		}
	}
	command := state.Command{
		Key: cmp.Or(request.RequestID, o.NewID()), Kind: resolveKind, Caller: request.Caller, At: o.Now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
	}
	event := model.Event{
		At: command.At, Kind: "operation.resolve", Subject: "vm/" + vm.Name, Caller: request.Caller,
		Message: "keep " + request.Keep + ": the copies of its disks on " + there + " are removed",
	}
	if request.Keep == copies {
		event.Message = "keep " + copies + ": the copies on " + there + " are its disks"
		useCopies(&command, snapshot, &vm)
	}
	vm.Copies = nil
	command.VMs, command.Events = []model.VM{vm}, []model.Event{event}
	_, again, err := o.ProposeOnce(ctx, command, "vm/"+vm.Name)
	return again, err
}

// useCopies makes the copies the disks of a VM. What it had before is named, because no record has it any more.
func useCopies(command *state.Command, snapshot *state.Snapshot, vm *model.VM) {
	left, on := "", ""
	for _, order := range vm.Copies.Volumes {
		disk, known := snapshot.Resource(order.Disk)
		if !known || order.Disk == "" {
			continue // a seed image follows from the VM
		}
		if was := disk.Volume; was != nil {
			pool, _ := snapshot.Resource(was.Pool)
			left += ", " + was.Name + " of pool " + cmp.Or(pool.Settings[schema.SettingSource], pool.Name)
			for _, node := range was.Nodes {
				on = node
			}
		}
		volume := model.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Backing: order.BackedIn}
		if !order.Shared {
			volume.Nodes = []string{vm.Copies.Node}
		}
		disk.Volume = &volume
		lead.Change(command, disk)
	}
	if vm.Home != "" {
		vm.Home = vm.Copies.Node
	}
	vm.Condition = model.Condition{}
	if left != "" && on != "" {
		vm.Condition = model.Condition{
			Kind: model.VolumesLeft, About: on,
			Text: "on " + lead.NodeName(snapshot, on) + ", where its disks were, volumes may be left" + left + ": remove them by hand",
		}
	}
}

// noCopies refuses what would lose sight of copies that may be the last ones of a VM's disks, or make others in their place.
func noCopies(snapshot *state.Snapshot, vm model.VM, what string) error {
	if vm.Copies == nil {
		return nil
	}
	copies, disks := vm.Copies.Side()
	next := fmt.Sprintf("wait until it has run with its disks, or decide: 'berth operation resolve %s --keep %s'", vm.Copies.Operation, disks)
	if vm.Copies.Whole {
		next += " or '--keep " + copies + "'"
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, NextStep: next, Message: fmt.Sprintf(
			"VM %q cannot be %s: %s has copies of its disks which may be the last", vm.Name, what, lead.NodeName(snapshot, vm.Copies.Node),
		),
	}
}
