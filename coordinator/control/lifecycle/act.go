package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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
		if len(request.Edits) > 0 || request.NewDisk != nil || request.Kind == operation.Resize {
			// Two must not find the same disk unused, nor the same room.
			l.Placing.Lock()
			defer l.Placing.Unlock()
			snapshot = l.Store.Snapshot()
		}
		first, err := l.actOn(ctx, snapshot, request)
		if errors.Is(err, errNotYet) {
			return lead.Incomplete, nil
		}
		if err != nil {
			return lead.Decided, err
		}
		if request.DryRun {
			op, err = first.Operation, l.tellable(&first)
			op.ID = ""
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
	if err := undisturbed(ctx, l, snapshot, &vm, request); err != nil {
		return First{}, err
	}
	at, revision := l.Now(), vm.Revision
	op := operation.Operation{
		ID: l.NewID(), Kind: request.Kind, Caller: request.Caller, Request: request.RequestID, VM: vm.ID, VMName: vm.Name,
		Source: vm.Holder, SourceName: lead.NodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
		Phase: operation.Dispatched, Step: 1, Attempt: 1, Force: request.Force, Grace: request.Grace, CreatedAt: at, UpdatedAt: at,
	}
	request.Edits = editsFor(&request, &vm)
	var made *model.Resource
	if len(request.Edits) > 0 {
		if vm.Holder == "" {
			vm = l.drifts.Ran(snapshot, vm)
		}
		if err := amending(scene{snapshot: snapshot, survey: l.surveyOf(snapshot)}, &op, &vm, request); err != nil {
			return First{}, err
		}
	}
	if request.NewDisk != nil {
		if made, err = l.volumes.AttachNew(snapshot, &op, &vm, request.NewDisk); err != nil {
			return First{}, err
		}
	}
	if aboutSnapshot(request.Kind) {
		if err := snapshotting(l, snapshot, &op, &vm, request); err != nil {
			return First{}, err
		}
		if vm.Operation = op.ID; len(op.Snapshot.Disks) == 0 { // a removal from disks that the VM has no more
			vm.Operation = ""
			op.Phase, op.Step, op.Result, op.EndedAt, op.Message = operation.Ended, 0, operation.Done, at, op.Snapshot.Left
			vm.WithoutSnapshot(op.Snapshot.Name)
		}
		return First{Next: operation.Next{Operation: op, VM: vm}, Revision: revision}, nil
	}
	if request.Kind == operation.Resize {
		if err := resizing(l, snapshot, &op, &vm, request); err != nil {
			return First{}, err
		}
	}
	if err := l.await(snapshot, &op, request); err != nil {
		return First{}, err
	}
	if vm.Holder != "" && request.Kind.Stops() {
		vm = l.drifts.Last(ctx, snapshot, vm)
	}
	switch {
	case vm.Holder != "":
		vm.Operation = op.ID
		if len(request.Edits) > 0 { // it is bound from when it may have the disk, and not from when its node tells
			after := vm
			after.Amend(op.Edits, vm.Holder, at)
			vm.Bound = l.drifts.Bound(snapshot, after).Bound
		}
	case len(request.Edits) > 0: // nothing is to be done on any node
		op.Source, op.SourceName = vm.LastNode, lead.NodeName(snapshot, vm.LastNode)
		op.Phase, op.Step, op.Result, op.EndedAt = operation.Ended, 0, operation.Done, at
		vm.Settled = vm.Epoch
		vm.Amend(op.Edits, vm.LastNode, at)
		vm = l.drifts.Bound(snapshot, vm)
	case request.NewDisk != nil: // its next start makes it
		op.Source, op.SourceName = vm.LastNode, lead.NodeName(snapshot, vm.LastNode)
		op.Phase, op.Step, op.Result, op.EndedAt, op.Message = operation.Ended, 0, operation.Done, at, "its next start makes disk "+made.Name
	case request.Kind == operation.Resize: // a set for the next start
		op.Phase, op.Step, op.Result, op.EndedAt = operation.Ended, 0, operation.Done, at
		vm = operation.Resized(vm, &op, at)
	case request.Kind.Stops() && vm.Desired == model.Running:
		leaveOff(&op, &vm, lead.NodeName(snapshot, vm.LastNode))
	case request.Kind.Forgets():
		return First{}, notRunning(vm, "'berth vm delete %s' forgets a VM that does not run")
	default:
		return First{}, notRunning(vm, startIt)
	}
	return First{Next: operation.Next{Operation: op, VM: vm}, Revision: revision, made: made}, nil
}

// undisturbed refuses what would come between a guest and what somebody else does with it, or is asked of the wrong node.
func undisturbed(ctx context.Context, l *Lifecycle, snapshot *state.Snapshot, vm *model.VM, request ActOnVM) error {
	if err := l.uninterrupted(vm, request); err != nil {
		return err
	}
	if !request.Force && !request.InterruptBackup && request.Snapshot.Freeze != model.FreezeNever {
		if err := l.drifts.Unfrozen(ctx, snapshot, vm, request.Kind); err != nil {
			return err
		}
	}
	return l.where(snapshot, vm, request.Kind.Stops())
}

// editsFor are the changes of devices that a request makes: none for a new disk of a VM that has ended since the request was made.
func editsFor(request *ActOnVM, vm *model.VM) []model.DeviceEdit {
	if request.NewDisk != nil && vm.Holder == "" {
		return nil
	}
	return request.Edits
}

// where refuses what a guest is to be asked for on its holder when that does not have it any more and another node shows it: it would be
// done there, to nothing, and the guest would run on. Nor is one that runs beside Berth stopped where no node holds it.
func (l *Lifecycle) where(snapshot *state.Snapshot, vm *model.VM, stops bool) error {
	facts := l.Inventory.Facts(vm.Holder, l.Now())
	domain, shown := facts.Domain(vm.ID), l.Inventory.Shown(vm.ID)
	left := facts.DomainsKnown && (domain == nil || !domain.State.Holds()) || vm.Holder == "" && stops
	if !left || len(shown) == 0 {
		return nil
	}
	names := make([]string, 0, len(shown))
	for _, node := range shown {
		names = append(names, lead.NodeName(snapshot, node))
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name,
		Message: fmt.Sprintf("VM %q is on %s and not on %s any more: somebody has moved it beside Berth", vm.Name,
			strings.Join(names, ", "), cmp.Or(lead.NodeName(snapshot, cmp.Or(vm.Holder, vm.LastNode)), "any node of Berth's")),
		NextStep: fmt.Sprintf("Berth follows what runs within seconds, repeat it then; 'berth vm show %s' says what else is to be done", vm.Name),
	}
}

// await has an order that has a date wait for a node that is silent now, not for long, or refuses it: it would be carried out whenever
// that node is back. The caller may want that.
func (l *Lifecycle) await(snapshot *state.Snapshot, op *operation.Operation, request ActOnVM) error {
	op.WhenBack = request.WhenBack && op.Kind.Dated() && snapshot.FeatureLevel() >= state.AwaitLevel
	if op.Source == "" || !op.Kind.Dated() || l.fencing.IsOff(snapshot, op.Source) {
		return nil
	}
	facts := l.Inventory.Facts(op.Source, l.Now())
	turn, unlisted := op.Hears(&facts)
	if turn || unlisted && (request.InterruptBackup || snapshot.FeatureLevel() < state.AwaitLevel) { // an older leader never carries it out
		return nil
	}
	if unlisted {
		operation.Await(op, operation.Unlisted(&facts))
		return nil
	}
	if facts.Liveness == model.Unreachable && l.Inventory.Settled(snapshot, l.Now()) && !request.WhenBack {
		return &lead.Error{
			Code: lead.Unavailable, Subject: "node/" + op.SourceName,
			Message: fmt.Sprintf("node %s, which runs VM %q, is unreachable (%s): its guest cannot be asked to %s now", op.SourceName, op.VMName,
				facts.LivenessReason, op.Kind),
			NextStep: fmt.Sprintf("%s has it done when %s is heard again; 'berth node show %s' tells what is known of it",
				op.WhenBackAgain(), op.SourceName, op.SourceName),
		}
	}
	if request.InterruptBackup {
		return &lead.Error{
			Code: lead.Conflict, Subject: "node/" + op.SourceName,
			Message:  fmt.Sprintf("node %s is silent, so nobody knows what a stop of VM %q would interrupt", op.SourceName, op.VMName),
			NextStep: "leave out --interrupt-backup: the stop waits for what runs then",
		}
	}
	if snapshot.FeatureLevel() < state.AwaitLevel { // an older leader would never carry it out
		return nil
	}
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
