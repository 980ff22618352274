package control

import (
	"context"
	"errors"
	"fmt"

	"berth/coordinator/operation"
)

// ReleaseVM asks for a VM to be given back: its domain runs on without Berth's mark, and Berth forgets it. It returns once
// that is committed; the operation tells how it ends.
func (c *Control) ReleaseVM(ctx context.Context, request ReleaseVM) (op operation.Operation, err error) {
	err = c.plan(ctx, "vm/"+request.VM, func() (retry, error) {
		snapshot, at := c.Store.Snapshot(), c.Now()
		if before, repeated := operationOf(snapshot, request.RequestID); repeated {
			op = before
			return decided, nil
		}
		vm, err := c.held(snapshot, request.VM)
		if err != nil {
			var refused *Error
			if errors.As(err, &refused) && refused.Code == Conflict {
				refused.NextStep = fmt.Sprintf("'berth vm delete %s' forgets a VM that does not run", vm.Name)
			}
			return decided, err
		}
		op = operation.Operation{
			ID: c.newID(), Kind: operation.Release, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
			Source: vm.Holder, SourceName: nodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, CreatedAt: at, UpdatedAt: at,
		}
		expected := vm.Revision
		vm.Operation = op.ID
		started, again, err := c.begin(ctx, beginning{Next: operation.Next{Operation: op, VM: vm}, vmRevision: expected})
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
