package lifecycle

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// ActOnVM commits the begin of an operation that the node which has the VM carries out as it is asked, without a decision. It
// returns once that is done; the operation tells how it ends.
func (l *Lifecycle) ActOnVM(ctx context.Context, request ActOnVM) (op operation.Operation, err error) {
	err = lead.Again(ctx, "vm/"+request.VM, func() (again lead.Retry, err error) {
		snapshot := l.Store.Snapshot()
		if before, repeated := OperationOf(snapshot, request.RequestID); repeated {
			op = before
			return lead.Decided, nil
		}
		first, err := l.actOn(ctx, snapshot, request)
		if err != nil {
			return lead.Decided, err
		}
		begun, again, err := l.BeginOperation(ctx, first)
		op = begun.Operation
		return again, err
	})
	return op, err
}

// actOn makes the first record.
func (l *Lifecycle) actOn(ctx context.Context, snapshot *state.Snapshot, request ActOnVM) (First, error) {
	vm, err := l.free(snapshot, request.VM)
	if err != nil {
		return First{}, err
	}
	if err := l.uninterrupted(&vm, request); err != nil {
		return First{}, err
	}
	at, revision := l.Now(), vm.Revision
	op := operation.Operation{
		ID: l.NewID(), Kind: request.Kind, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
		Source: vm.Holder, SourceName: lead.NodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
		Phase: operation.Dispatched, Step: 1, Attempt: 1, Force: request.Force, Grace: request.Grace, CreatedAt: at, UpdatedAt: at,
	}
	if err := l.await(snapshot, &op, request.WhenBack); err != nil {
		return First{}, err
	}
	if vm.Holder != "" && request.Kind.Stops() {
		vm = l.drifts.Last(ctx, snapshot, vm)
	}
	switch {
	case vm.Holder != "":
		vm.Operation = op.ID
	case request.Kind.Stops() && vm.Desired == model.Running:
		leaveOff(&op, &vm, lead.NodeName(snapshot, vm.LastNode))
	case request.Kind.Forgets():
		return First{}, notRunning(vm, "'berth vm delete %s' forgets a VM that does not run")
	default:
		return First{}, notRunning(vm, startIt)
	}
	return First{Next: operation.Next{Operation: op, VM: vm}, Revision: revision}, nil
}

// await has a stop or a reboot wait for a node that is silent now, not for long, or refuses it: it would be carried out whenever that node
// is back. The caller may want that.
func (l *Lifecycle) await(snapshot *state.Snapshot, op *operation.Operation, whenBack bool) error {
	waits := op.Kind == operation.Stop || op.Kind == operation.Reboot
	if op.Source == "" || !waits || l.heard(op.Source) || l.fencing.IsOff(snapshot, op.Source) {
		return nil
	}
	facts := l.Inventory.Facts(op.Source, l.Now())
	if facts.Liveness == model.Unreachable && l.Inventory.Settled(snapshot, l.Now()) && !whenBack {
		return &lead.Error{
			Code: lead.Unavailable, Subject: "node/" + op.SourceName,
			Message: fmt.Sprintf("node %s, which runs VM %q, is unreachable (%s): its guest cannot be asked to %s now", op.SourceName, op.VMName,
				facts.LivenessReason, op.Kind),
			NextStep: fmt.Sprintf("'berth vm %s %s --when-back' has it done when %s is heard again; 'berth node show %s' tells what is known of it",
				op.Kind, op.VMName, op.SourceName, op.SourceName),
		}
	}
	if snapshot.FeatureLevel() < state.AwaitLevel { // an older leader would never carry it out
		return nil
	}
	op.WhenBack = whenBack
	operation.Await(op, "is "+string(facts.Liveness)+": "+facts.LivenessReason)
	return nil
}

// leaveOff has a VM that was stopped by somebody else stay off. There is nothing to be done on any node: the operation has ended
// when it begins.
func leaveOff(op *operation.Operation, vm *model.VM, lastNode string) {
	op.Source, op.SourceName = vm.LastNode, lastNode
	op.Phase, op.Step, op.Result, op.EndedAt = operation.Ended, 0, operation.Done, op.UpdatedAt
	op.Evidence = []string{"no node had it any more: it is left off"}
	vm.Desired, vm.Condition = model.Stopped, model.Condition{}
}

// free is a VM that no operation works on.
func (l *Lifecycle) free(snapshot *state.Snapshot, id string) (model.VM, error) {
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
	}
	return vm, nil
}

// held is a VM that some node holds and no operation works on.
func (l *Lifecycle) held(snapshot *state.Snapshot, id string) (model.VM, error) {
	vm, err := l.free(snapshot, id)
	if err == nil && vm.Holder == "" {
		err = notRunning(vm, startIt)
	}
	return vm, err
}

const startIt = "start it with 'berth vm start %s'"

// notRunning refuses what needs a VM that runs. The next step has a place for the VM's name.
func notRunning(vm model.VM, nextStep string) error {
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
		NextStep: fmt.Sprintf(nextStep, vm.Name),
	}
}
