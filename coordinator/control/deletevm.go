package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// DeleteVM forgets a stopped VM, and with it its disks that are volumes unless they are to be kept. Disks that are files are
// not Berth's and stay. A VM without a volume to remove goes at once, and the operation has no ID; else the operation tells
// when it has gone. Until then its disks cannot be used: deleting it again finishes what went wrong. Refusals are of type
// *Error.
func (c *Control) DeleteVM(ctx context.Context, request DeleteVM) (operation.Operation, error) {
	var op operation.Operation
	err := c.plan(ctx, "vm/"+request.VM, func() (again retry, err error) {
		op, again, err = c.deleteOnce(ctx, request)
		return again, err
	})
	return op, err
}

func (c *Control) deleteOnce(ctx context.Context, request DeleteVM) (operation.Operation, retry, error) {
	if !c.leading() {
		return operation.Operation{}, decided, errNotLeading
	}
	snapshot := c.Store.Snapshot()
	if op, repeated := operationOf(snapshot, request.RequestID); repeated {
		return op, decided, nil
	}
	vm, exists := snapshot.VM(request.VM)
	if !exists {
		if request.RequestID != "" && snapshot.Answered(request.RequestID, deleteVMKind) {
			return operation.Operation{}, decided, nil
		}
		return operation.Operation{}, decided, &Error{
			Code: NotFound, Subject: "vm/" + request.VM, Message: fmt.Sprintf("there is no VM %q", request.VM), NextStep: "see 'berth vm list'",
		}
	}
	if err := c.deletable(snapshot, vm); err != nil {
		return operation.Operation{}, decided, err
	}
	parts, err := partsOf(snapshot, vm, request.KeepDisks)
	if err != nil {
		return operation.Operation{}, decided, err
	}
	if len(parts.volumes) > 0 {
		if err := quarantined(snapshot); err != nil {
			return operation.Operation{}, decided, err
		}
		return c.deleteWithVolumes(ctx, snapshot, vm, parts, request)
	}
	command := c.storageCommand(deleteVMKind, request.RequestID, request.Caller)
	command.Expect = []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}
	command.Delete = []state.Record{{Table: state.VMs, ID: vm.ID}}
	for _, disk := range parts.disks {
		remove(&command, disk)
	}
	command.Events = []cluster.Event{{
		At: command.At, Kind: "vm.deleted", Subject: "vm/" + vm.Name, Message: "forgotten; its disks stay where they are", Caller: request.Caller,
	}}
	_, again, err := c.once(ctx, command, "vm/"+vm.Name)
	return operation.Operation{}, again, err
}

// deletable refuses to forget a VM that runs or may run.
func (c *Control) deletable(snapshot *state.Snapshot, vm cluster.VM) error {
	subject := "vm/" + vm.Name
	switch {
	case vm.Operation != "":
		return busy(snapshot, vm)
	case vm.Holder != "":
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("VM %q is not stopped: node %s holds it", vm.Name, nodeName(snapshot, vm.Holder)),
			NextStep: fmt.Sprintf("stop it first: 'berth vm stop %s'", vm.Name),
		}
	case len(vm.Discards) > 0:
		name := nodeName(snapshot, vm.Discards[0].Node)
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("a migration has left a paused copy of VM %q on %s, which goes when that node answers", vm.Name, name),
			NextStep: fmt.Sprintf("bring %s back, or say so if its machine is off: 'berth node fence %s --confirmed-off'", name, name),
		}
	}
	running, _ := c.inventories(snapshot)
	if copies := running[vm.ID]; len(copies) > 0 {
		var names []string
		for _, one := range copies {
			names = append(names, one.node.Name)
		}
		return &Error{
			Code: Conflict, Subject: subject,
			Message:  fmt.Sprintf("a domain with the UUID of VM %q runs on %s", vm.Name, strings.Join(names, ", ")),
			NextStep: fmt.Sprintf("shut it down there with 'virsh shutdown %s'", vm.Name),
		}
	}
	return nil
}

// parts are what goes with a VM.
type parts struct {
	disks   []cluster.Resource    // their records
	volumes []cluster.VolumeOrder // that are there
	nodes   []string              // IDs of those that have them, of local pools
}

func partsOf(snapshot *state.Snapshot, vm cluster.VM, keep bool) (parts, error) {
	var found parts
	seed, there, err := estate.VolumesOf(snapshot, vm, nil)
	if err != nil {
		return parts{}, unlinked(vm, err)
	}
	found.volumes = seed
	for _, id := range vm.Disks {
		disk, known := snapshot.Resource(id)
		if !known || !estate.IsVolume(&disk) {
			continue
		}
		at := slices.IndexFunc(there, func(order cluster.VolumeOrder) bool { return order.Disk == id })
		goes := !keep && !estate.Kept(&disk)
		if goes {
			found.disks = append(found.disks, disk)
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

func (c *Control) deleteWithVolumes(
	ctx context.Context, snapshot *state.Snapshot, vm cluster.VM, parts parts, request DeleteVM,
) (operation.Operation, retry, error) {
	node, err := c.remover(snapshot, vm, parts)
	if err != nil {
		return operation.Operation{}, decided, err
	}
	at := c.Now()
	op := operation.Operation{
		ID: c.newID(), Kind: operation.Delete, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
		Source: node, SourceName: nodeName(snapshot, node), Leftover: node, Epoch: vm.EpochsGiven(),
		Phase: operation.Clearing, Step: 1, Attempt: 1, Replaced: parts.volumes, CreatedAt: at, UpdatedAt: at,
	}
	first := beginning{vmRevision: vm.Revision}
	for _, disk := range parts.disks {
		op.Disks = append(op.Disks, disk.ID)
		if disk.Volume != nil && !disk.Volume.Doomed {
			disk.Volume.Doomed = true
		}
		first.changed = append(first.changed, disk)
	}
	vm.Operation = op.ID
	first.Next = operation.Next{Operation: op, VM: vm}
	started, again, err := c.begin(ctx, first)
	return started.Operation, again, err
}

// remover is the node that removes the volumes of a VM: the one that has them in its local pools, or one that sees the shared
// pools. One that does not answer now does so later: the operation waits for it.
func (c *Control) remover(snapshot *state.Snapshot, vm cluster.VM, parts parts) (string, error) {
	if len(parts.nodes) > 1 {
		return "", &Error{
			Code: Conflict, Subject: "vm/" + vm.Name,
			Message:  fmt.Sprintf("the disks of VM %q are on %s and %s", vm.Name, nodeName(snapshot, parts.nodes[0]), nodeName(snapshot, parts.nodes[1])),
			NextStep: "take those of one node from the VM, and delete them by themselves",
		}
	}
	if len(parts.nodes) == 1 {
		return parts.nodes[0], nil
	}
	view := c.Inventory.View(snapshot, c.Now())
	var all []string // that see every pool
	for i, volume := range parts.volumes {
		pool, err := poolOf(view, volume.Pool)
		if err != nil {
			return "", err
		}
		seen := c.seenBy(&pool)
		if i == 0 {
			all = seen
		}
		all = slices.DeleteFunc(all, func(node string) bool { return !slices.Contains(seen, node) })
		if len(all) == 0 {
			return "", vanished(snapshot, &pool)
		}
	}
	return all[0], nil
}
