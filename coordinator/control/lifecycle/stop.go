package lifecycle

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// StopVM commits the stop of a VM. It returns once that is done; the operation tells how it ends.
func (l *Lifecycle) StopVM(ctx context.Context, request StopVM) (operation.Operation, error) {
	for range lead.MostReplans {
		snapshot := l.Store.Snapshot()
		if op, repeated := OperationOf(snapshot, request.RequestID); repeated {
			return op, nil
		}
		if l.Leading() && lead.Quarantined(snapshot) == nil {
			if vm, left := stoppedAlready(snapshot, request.VM); left {
				op, again, err := l.leaveOff(ctx, snapshot, vm, request)
				if again == lead.Decided {
					return op, err
				}
				continue
			}
		}
		vm, err := l.held(snapshot, request.VM)
		if err != nil {
			return operation.Operation{}, err
		}
		at := l.Now()
		grace := request.Grace
		if grace == 0 {
			grace = DefaultGrace
		}
		op := operation.Operation{
			ID: l.NewID(), Kind: operation.Stop, Caller: request.Caller, Request: request.RequestID,
			VM: vm.ID, VMName: vm.Name, Source: vm.Holder, SourceName: lead.NodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, Force: request.Force, Grace: grace,
			CreatedAt: at, UpdatedAt: at,
		}
		expected := vm.Revision
		vm.Operation = op.ID
		started, again, err := l.BeginOperation(ctx, First{Next: operation.Next{Operation: op, VM: vm}, Revision: expected})
		if again == lead.Decided {
			return started.Operation, err
		}
	}
	return operation.Operation{}, lead.TooBusy("vm/" + request.VM)
}

// stoppedAlready is a VM that is to run and does not, because somebody else has stopped it.
func stoppedAlready(snapshot *state.Snapshot, id string) (model.VM, bool) {
	vm, exists := snapshot.VM(id)
	return vm, exists && vm.Operation == "" && vm.Holder == "" && vm.Desired == model.Running
}

// leaveOff commits that a VM which was stopped by somebody else is to stay off. There is nothing to be done on any node: the
// operation has ended when it begins.
func (l *Lifecycle) leaveOff(
	ctx context.Context, snapshot *state.Snapshot, vm model.VM, request StopVM,
) (operation.Operation, lead.Retry, error) {
	at := l.Now()
	op := operation.Operation{
		ID: l.NewID(), Kind: operation.Stop, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
		Source: vm.LastNode, SourceName: lead.NodeName(snapshot, vm.LastNode), Epoch: vm.Epoch, Phase: operation.Ended, Result: operation.Done,
		Attempt: 1, Force: request.Force, CreatedAt: at, UpdatedAt: at, EndedAt: at,
		Evidence: []string{"no node had it any more: it is left off"},
	}
	expected := vm.Revision
	vm.Desired, vm.Condition = model.Stopped, model.Condition{}
	started, again, err := l.BeginOperation(ctx, First{Next: operation.Next{Operation: op, VM: vm}, Revision: expected})
	return started.Operation, again, err
}

// held is a VM that some node holds and no operation works on.
func (l *Lifecycle) held(snapshot *state.Snapshot, id string) (model.VM, error) {
	if !l.Leading() {
		return model.VM{}, lead.ErrNotLeading
	}
	if err := lead.Quarantined(snapshot); err != nil {
		return model.VM{}, err
	}
	vm, exists := snapshot.VM(id)
	switch {
	case !exists:
		return vm, &lead.Error{
			Code: lead.NotFound, Subject: "vm/" + id, Message: fmt.Sprintf("there is no VM %q", id), NextStep: "see 'berth vm list'",
		}
	case vm.Operation != "":
		return vm, lead.VMBusy(snapshot, vm)
	case vm.Holder == "":
		return vm, &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
			NextStep: fmt.Sprintf("start it with 'berth vm start %s'", vm.Name),
		}
	}
	return vm, nil
}
