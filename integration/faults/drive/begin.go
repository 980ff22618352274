package drive

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// of is an operation of a VM that begins now.
func of(kind operation.Kind, id string, vm *model.VM, at time.Time) operation.Operation {
	return operation.Operation{
		ID: id, Kind: kind, Caller: "sim", VM: vm.ID, VMName: vm.Name, Phase: operation.Dispatched, Step: 1, Attempt: 1,
		CreatedAt: at, UpdatedAt: at,
	}
}

// Stop is the stop of a VM that runs.
func Stop(id string, vm *model.VM, force bool, at time.Time) operation.Operation {
	op := of(operation.Stop, id, vm, at)
	op.Source, op.SourceName, op.Epoch, op.Force, op.Grace = vm.Holder, vm.Holder, vm.Epoch, force, 10*time.Second
	return op
}

// Reboot is the restart of the guest of a VM.
func Reboot(id string, vm *model.VM, force bool, at time.Time) operation.Operation {
	op := of(operation.Reboot, id, vm, at)
	op.Source, op.SourceName, op.Epoch, op.Force = vm.Holder, vm.Holder, vm.Epoch, force
	return op
}

// Migrate is the migration of a VM, whose record has the new epoch already, to a node at this address.
func Migrate(id string, vm *model.VM, sourceBoot string, node *model.Node, uri string, at time.Time) operation.Operation {
	op := of(operation.Migrate, id, vm, at)
	op.Phase = operation.Preparing
	op.Source, op.SourceName, op.SourceBoot, op.SourceEpoch = vm.Holder, vm.Holder, sourceBoot, vm.Epoch
	op.Target, op.TargetName, op.TargetBoot, op.TargetURI, op.Epoch = node.ID, node.Name, node.Boot, uri, vm.LastEpoch
	op.Memory, op.VCPUs = vm.Spec.Memory, vm.Spec.VCPUs
	return op
}

// Sized has an operation hold as much on its node as the VM takes where it runs.
func Sized(op *operation.Operation, size model.Size) { op.Memory, op.VCPUs = size.Memory, size.VCPUs }

// Adopt takes a VM in, whose record has the new epoch already, where it runs.
func Adopt(id string, vm *model.VM, node string, at time.Time) operation.Operation {
	op := of(operation.Adopt, id, vm, at)
	op.Caller, op.Target, op.TargetName, op.Epoch = "berth", node, node, vm.LastEpoch
	if vm.Holder != "" && vm.Holder != node {
		op.Source, op.SourceName = vm.Holder, vm.Holder
	}
	return op
}
