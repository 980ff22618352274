package adoption

import (
	"context"
	"errors"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// adoptee is what is to be marked: a VM whose record exists, or is made with it.
type adoptee struct {
	vm      model.VM
	node    string // ID
	created bool
	caller  string
	request string
}

// adopt commits an adoption: the record and the operation as one. Prepare is asked again when the state moved on.
func (a *Adoption) adopt(ctx context.Context, prepare func(*state.Snapshot) (adoptee, error)) (op operation.Operation, err error) {
	err = a.InTurn(ctx, "vm", func() (lead.Retry, error) {
		if !a.Leading() {
			return lead.Decided, lead.ErrNotLeading
		}
		snapshot, at := a.Store.Snapshot(), a.Now()
		wanted, err := prepare(snapshot)
		if err != nil {
			return lead.Decided, err
		}
		vm, expected := wanted.vm, wanted.vm.Revision
		vm.LastEpoch = vm.EpochsGiven() + 1
		op = operation.Operation{
			ID: a.NewID(), Kind: operation.Adopt, Caller: wanted.caller, Request: wanted.request, VM: vm.ID, VMName: vm.Name,
			Target: wanted.node, TargetName: lead.NodeName(snapshot, wanted.node), Epoch: vm.LastEpoch, Created: wanted.created,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, CreatedAt: at, UpdatedAt: at,
		}
		if vm.Holder != "" && vm.Holder != wanted.node {
			op.Source, op.SourceName = vm.Holder, lead.NodeName(snapshot, vm.Holder)
		}
		vm.Operation, vm.Desired = op.ID, model.Running
		first := lifecycle.First{
			Next: operation.Next{Operation: op, VM: vm}, Revision: expected, Read: []state.Expectation{lifecycle.NodeUnmoved(snapshot, wanted.node)},
		}
		if vdc, linked := snapshot.Resource(vm.VDC); linked && wanted.created {
			first.Read = append(first.Read, state.Expectation{Table: state.Resources, ID: vdc.ID, Revision: vdc.Revision})
		}
		started, again, err := a.operations.BeginOperation(ctx, first)
		op = started.Operation
		return again, err
	})
	return op, err
}

// ErrMovedOn says that a VM's record has changed: whoever changed it knows better.
var ErrMovedOn = errors.New("the VM's record has changed")

// TakeOver gives a VM that runs on another node than recorded a new epoch there.
func (a *Adoption) TakeOver(ctx context.Context, vm model.VM, node string) error {
	_, err := a.adopt(ctx, func(snapshot *state.Snapshot) (adoptee, error) {
		now, known := snapshot.VM(vm.ID)
		if !known || now.Revision != vm.Revision {
			return adoptee{}, ErrMovedOn
		}
		return adoptee{vm: now, node: node, caller: lead.Berth}, nil
	})
	return err
}
