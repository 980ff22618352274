package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// ResolveOperation ends a parked operation by an operator's word. Nothing is killed: while a node shows a copy that is not to be kept,
// it is refused, with what is to be done there.
func (o *Operations) ResolveOperation(ctx context.Context, request ResolveOperation) (op operation.Operation, err error) {
	subject := "operation/" + request.ID
	err = o.InTurn(ctx, subject, func() (lead.Retry, error) {
		if !o.Leading() {
			return lead.Decided, lead.ErrNotLeading
		}
		snapshot, at := o.Store.Snapshot(), o.Now()
		known := false
		op, known = snapshot.Operation(request.ID)
		if vm, left := withCopies(snapshot, request.ID); left && !op.Live() {
			return o.resolveCopies(ctx, snapshot, vm, request)
		}
		switch {
		case !known:
			return lead.Decided, &lead.Error{
				Code: lead.NotFound, Subject: subject, Message: fmt.Sprintf("there is no operation %q", request.ID), NextStep: "see 'berth " +
					"operation list'",
			}
		case request.RequestID != "" && snapshot.Answered(request.RequestID, resolveKind):
			return lead.Decided, nil
		}
		if err := lead.Quarantined(snapshot); err != nil {
			return lead.Decided, err
		}
		vm, _ := snapshot.VM(op.VM)
		survey, seen := o.fencing.Survey(snapshot), map[string]operation.Observation{}
		for _, node := range []string{op.Source, op.Target} {
			if node != "" {
				seen[node] = survey.Observed(node, op.VM)
			}
		}
		next, obstacle := operation.Resolve(op, vm, request.Keep, seen, request.Caller, at)
		if obstacle != nil {
			return lead.Decided, hindered(snapshot, op, vm, obstacle)
		}
		command := state.Command{
			Key: cmp.Or(request.RequestID, o.NewID()), Kind: resolveKind, Caller: request.Caller, At: at,
			Expect: []state.Expectation{
				{Table: state.Operations, ID: op.ID, Revision: op.Revision}, {Table: state.VMs, ID: vm.ID, Revision: vm.Revision},
			},
			Operations: []operation.Operation{next.Operation}, VMs: []model.VM{next.VM},
			Events: []model.Event{EventOf(next.Operation, request.Caller, "operation.resolve", resolutionText(snapshot, op, request.Keep, seen))},
		}
		result, err := o.Propose(ctx, command)
		switch {
		case err != nil:
			return lead.Decided, err
		case result.Refusal == nil:
			op = next.Operation
			op.Revision = result.Index
			o.drive(op.ID)
			return lead.Decided, nil
		case result.Refusal.Code == state.Stale:
			return lead.Stale, nil
		default:
			return lead.Decided, lead.RefusalOf(result.Refusal, vm.Name)
		}
	})
	return op, err
}

// resolutionText is what the history keeps of a resolution: who is the caller, and when is the event's time.
func resolutionText(snapshot *state.Snapshot, op operation.Operation, keep string, seen map[string]operation.Observation) string {
	text := "keep " + keep
	for _, node := range []string{op.Source, op.Target} {
		if node != "" {
			text += fmt.Sprintf("; %s showed it %s, epoch %d", lead.NodeName(snapshot, node), seen[node].State, seen[node].Epoch)
		}
	}
	return text
}

// hindered says what is in the way of a resolution, and the line that takes it away.
func hindered(snapshot *state.Snapshot, op operation.Operation, vm model.VM, obstacle *operation.Obstacle) *lead.Error {
	refuse := &lead.Error{Code: lead.Conflict, Subject: "operation/" + op.ID, Operation: op.ID}
	node := lead.NodeName(snapshot, obstacle.Node)
	switch obstacle.Code {
	case operation.NotParked:
		refuse.Message = fmt.Sprintf(
			"operation %s is not parked (%s): there is nothing to decide", op.ID, cmp.Or(string(op.Result), string(op.Phase)),
		)
		refuse.NextStep = fmt.Sprintf("see 'berth operation show %s'", op.ID)
		if !op.Live() {
			refuse.Message = fmt.Sprintf("operation %s has ended (%s): there is nothing to decide", op.ID, op.Outcome())
		}
	case operation.KeepsUnknown:
		refuse.Code, refuse.Message, refuse.NextStep = lead.Invalid, "whose copy is to be kept is not said", "give --keep source, target or none"
	case operation.NoSuchSide:
		refuse.Code, refuse.Message, refuse.NextStep = lead.Invalid, fmt.Sprintf(
			"operation %s has no such node", op.ID,
		), "see 'berth operation show "+op.ID+"'"
	case operation.StillThere:
		refuse.Message = fmt.Sprintf(
			"%s shows the copy that is not to be kept: it is %s there, epoch %d", node, obstacle.Seen.State, obstacle.Seen.Epoch,
		)
		refuse.NextStep = fmt.Sprintf("end that copy with 'virsh destroy %s' on %s, and resolve it again", vm.Name, node)
	case operation.NotHeard:
		refuse.Message = fmt.Sprintf("%s does not tell whether it has the VM", node)
		refuse.NextStep = fmt.Sprintf("see 'berth node show %s'; if it is off for good, prove it with 'berth node fence %s'", node, node)
	case operation.NotThere:
		refuse.Message = fmt.Sprintf("%s does not run the copy that is to be kept: it is %s there", node, obstacle.Seen.State)
		refuse.NextStep = "keep the other one; with --keep none the VM is stopped, and can be started anew"
	case operation.DisksMoved:
		refuse.Message = fmt.Sprintf(
			"its disks were copied to %s, and are recorded there: the source's copy writes to disks that are not the VM's any more", node,
		)
		refuse.NextStep = "keep the target, or none"
	}
	return refuse
}
