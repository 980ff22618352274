package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/operation"
)

// ReleaseVM asks for a VM to be given back: its domain runs on without Berth's mark, and Berth forgets it. It returns once
// that is committed; the operation tells how it ends.
func (l *Lifecycle) ReleaseVM(ctx context.Context, request ReleaseVM) (op operation.Operation, err error) {
	err = l.InTurn(ctx, "vm/"+request.VM, func() (lead.Retry, error) {
		snapshot, at := l.Store.Snapshot(), l.Now()
		if before, repeated := OperationOf(snapshot, request.RequestID); repeated {
			op = before
			return lead.Decided, nil
		}
		vm, err := l.held(snapshot, request.VM)
		if err != nil {
			var refused *lead.Error
			if errors.As(err, &refused) && refused.Code == lead.Conflict {
				refused.NextStep = fmt.Sprintf("'berth vm delete %s' forgets a VM that does not run", vm.Name)
			}
			return lead.Decided, err
		}
		op = operation.Operation{
			ID: l.NewID(), Kind: operation.Release, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
			Source: vm.Holder, SourceName: lead.NodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, CreatedAt: at, UpdatedAt: at,
		}
		expected := vm.Revision
		vm.Operation = op.ID
		started, again, err := l.BeginOperation(ctx, First{Next: operation.Next{Operation: op, VM: vm}, Revision: expected})
		op = started.Operation
		return again, err
	})
	return op, err
}

// ReleaseVM names the VM that is to be given back.
type ReleaseVM struct {
	VM        string // ID
	RequestID string
	Caller    string
}
