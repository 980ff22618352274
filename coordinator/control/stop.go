package control

import (
	"context"
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// StopVM commits the stop of a VM. It returns once that is done; the operation tells how it ends.
func (c *Control) StopVM(ctx context.Context, request StopVM) (operation.Operation, error) {
	for range maxReplans {
		snapshot := c.Store.Snapshot()
		if op, repeated := operationOf(snapshot, request.RequestID); repeated {
			return op, nil
		}
		if c.leading() && quarantined(snapshot) == nil {
			if vm, left := stoppedAlready(snapshot, request.VM); left {
				op, again, err := c.leaveOff(ctx, snapshot, vm, request)
				if again == decided {
					return op, err
				}
				continue
			}
		}
		vm, err := c.held(snapshot, request.VM)
		if err != nil {
			return operation.Operation{}, err
		}
		at := c.Now()
		grace := request.Grace
		if grace == 0 {
			grace = DefaultGrace
		}
		op := operation.Operation{
			ID: c.newID(), Kind: operation.Stop, Caller: request.Caller, Request: request.RequestID,
			VM: vm.ID, VMName: vm.Name, Source: vm.Holder, SourceName: nodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, Force: request.Force, Grace: grace,
			CreatedAt: at, UpdatedAt: at,
		}
		expected := vm.Revision
		vm.Operation = op.ID
		started, again, err := c.begin(ctx, beginning{Next: operation.Next{Operation: op, VM: vm}, vmRevision: expected})
		if again == decided {
			return started.Operation, err
		}
	}
	return operation.Operation{}, errTooBusy("vm/" + request.VM)
}

// stoppedAlready is a VM that is to run and does not, because somebody else has stopped it.
func stoppedAlready(snapshot *state.Snapshot, id string) (cluster.VM, bool) {
	vm, exists := snapshot.VM(id)
	return vm, exists && vm.Operation == "" && vm.Holder == "" && vm.Desired == cluster.Running
}

// leaveOff commits that a VM which was stopped by somebody else is to stay off. There is nothing to be done on any node: the
// operation has ended when it begins.
func (c *Control) leaveOff(ctx context.Context, snapshot *state.Snapshot, vm cluster.VM, request StopVM) (operation.Operation, retry, error) {
	at := c.Now()
	op := operation.Operation{
		ID: c.newID(), Kind: operation.Stop, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
		Source: vm.LastNode, SourceName: nodeName(snapshot, vm.LastNode), Epoch: vm.Epoch, Phase: operation.Ended, Result: operation.Done,
		Attempt: 1, Force: request.Force, CreatedAt: at, UpdatedAt: at, EndedAt: at,
		Evidence: []string{"no node had it any more: it is left off"},
	}
	expected := vm.Revision
	vm.Desired, vm.Condition = cluster.Stopped, ""
	started, again, err := c.begin(ctx, beginning{Next: operation.Next{Operation: op, VM: vm}, vmRevision: expected})
	return started.Operation, again, err
}

// held is a VM that some node holds and no operation works on.
func (c *Control) held(snapshot *state.Snapshot, id string) (cluster.VM, error) {
	if !c.leading() {
		return cluster.VM{}, errNotLeading
	}
	if err := quarantined(snapshot); err != nil {
		return cluster.VM{}, err
	}
	vm, exists := snapshot.VM(id)
	switch {
	case !exists:
		return vm, &Error{
			Code: NotFound, Subject: "vm/" + id, Message: fmt.Sprintf("there is no VM %q", id), NextStep: "see 'berth vm list'",
		}
	case vm.Operation != "":
		return vm, busy(snapshot, vm)
	case vm.Holder == "":
		return vm, &Error{
			Code: Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
			NextStep: fmt.Sprintf("start it with 'berth vm start %s'", vm.Name),
		}
	}
	return vm, nil
}
