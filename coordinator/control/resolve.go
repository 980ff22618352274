package control

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// ResolveOperation is an operator's word about a parked operation.
type ResolveOperation struct {
	ID        string
	Keep      string // operation.KeepSource, KeepTarget or KeepNone
	RequestID string
	Caller    string
}

// resolveKind is the kind of the command that resolves an operation.
const resolveKind = "resolve operation"

// ResolveOperation ends a parked operation by an operator's word. Nothing is killed: while a node shows a copy that is not to be kept,
// it is refused, with what is to be done there.
func (c *Control) ResolveOperation(ctx context.Context, request ResolveOperation) (op operation.Operation, err error) {
	subject := "operation/" + request.ID
	err = c.plan(ctx, subject, func() (retry, error) {
		if !c.leading() {
			return decided, errNotLeading
		}
		snapshot, at := c.Store.Snapshot(), c.Now()
		known := false
		op, known = snapshot.Operation(request.ID)
		switch {
		case !known:
			return decided, &Error{
				Code: NotFound, Subject: subject, Message: fmt.Sprintf("there is no operation %q", request.ID), NextStep: "see 'berth operation list'",
			}
		case request.RequestID != "" && snapshot.Answered(request.RequestID, resolveKind):
			return decided, nil
		}
		if err := quarantined(snapshot); err != nil {
			return decided, err
		}
		vm, _ := snapshot.VM(op.VM)
		seen := map[string]operation.Observation{}
		for _, node := range []string{op.Source, op.Target} {
			if node != "" {
				seen[node] = c.observed(snapshot, node, op.VM)
			}
		}
		next, obstacle := operation.Resolve(op, vm, request.Keep, seen, request.Caller, at)
		if obstacle != nil {
			return decided, hindered(snapshot, op, vm, obstacle)
		}
		command := state.Command{
			Key: cmp.Or(request.RequestID, c.newID()), Kind: resolveKind, Caller: request.Caller, At: at,
			Expect: []state.Expectation{
				{Table: state.Operations, ID: op.ID, Revision: op.Revision}, {Table: state.VMs, ID: vm.ID, Revision: vm.Revision},
			},
			Operations: []operation.Operation{next.Operation}, VMs: []cluster.VM{next.VM},
			Events: []cluster.Event{c.event(next.Operation, request.Caller, "operation.resolve", resolutionText(snapshot, op, request.Keep, seen))},
		}
		result, err := c.propose(ctx, command)
		switch {
		case err != nil:
			return decided, err
		case result.Refusal == nil:
			op = next.Operation
			op.Revision = result.Index
			c.drive(op.ID)
			return decided, nil
		case result.Refusal.Code == state.Stale:
			return moved, nil
		default:
			return decided, fromRefusal(result.Refusal, vm.Name)
		}
	})
	return op, err
}

// observed is what a node shows of a VM. One that does not tell shows it unknown; one that is proven to be off does not have it.
func (c *Control) observed(snapshot *state.Snapshot, node, vm string) operation.Observation {
	if c.isOff(snapshot, node) {
		return operation.Observation{State: cluster.DomainAbsent}
	}
	facts := c.Inventory.Facts(node, c.Now())
	if facts.Liveness != cluster.Up || !facts.Inventory || !facts.DomainsKnown {
		return operation.Observation{State: cluster.DomainUnknown}
	}
	domain := facts.Domain(vm)
	if domain == nil {
		return operation.Observation{State: cluster.DomainAbsent}
	}
	return operation.Observation{State: domain.State, Epoch: domain.Epoch, JobActive: domain.JobActive}
}

// resolutionText is what the history keeps of a resolution: who is the caller, and when is the event's time.
func resolutionText(snapshot *state.Snapshot, op operation.Operation, keep string, seen map[string]operation.Observation) string {
	text := "keep " + keep
	for _, node := range []string{op.Source, op.Target} {
		if node != "" {
			text += fmt.Sprintf("; %s showed it %s, epoch %d", nodeName(snapshot, node), seen[node].State, seen[node].Epoch)
		}
	}
	return text
}

// hindered says what is in the way of a resolution, and the line that takes it away.
func hindered(snapshot *state.Snapshot, op operation.Operation, vm cluster.VM, obstacle *operation.Obstacle) *Error {
	refuse := &Error{Code: Conflict, Subject: "operation/" + op.ID, Operation: op.ID}
	node := nodeName(snapshot, obstacle.Node)
	switch obstacle.Code {
	case operation.NotParked:
		refuse.Message = fmt.Sprintf("operation %s is not parked (%s): there is nothing to decide", op.ID, cmp.Or(string(op.Result), string(op.Phase)))
		refuse.NextStep = fmt.Sprintf("see 'berth operation show %s'", op.ID)
		if !op.Live() {
			refuse.Message = fmt.Sprintf("operation %s has ended (%s): there is nothing to decide", op.ID, op.Result)
		}
	case operation.KeepsUnknown:
		refuse.Code, refuse.Message, refuse.NextStep = Invalid, "whose copy is to be kept is not said", "give --keep source, target or none"
	case operation.NoSuchSide:
		refuse.Code, refuse.Message, refuse.NextStep = Invalid, fmt.Sprintf("operation %s has no such node", op.ID), "see 'berth operation show "+op.ID+"'"
	case operation.StillThere:
		refuse.Message = fmt.Sprintf("%s shows the copy that is not to be kept: it is %s there, epoch %d", node, obstacle.Seen.State, obstacle.Seen.Epoch)
		refuse.NextStep = fmt.Sprintf("end that copy with 'virsh destroy %s' on %s, and resolve it again", vm.Name, node)
	case operation.NotHeard:
		refuse.Message = fmt.Sprintf("%s does not tell whether it has the VM", node)
		refuse.NextStep = fmt.Sprintf("see 'berth node show %s'; if it is off for good, prove it with 'berth node fence %s'", node, node)
	case operation.NotThere:
		refuse.Message = fmt.Sprintf("%s does not run the copy that is to be kept: it is %s there", node, obstacle.Seen.State)
		refuse.NextStep = "keep the other one; with --keep none the VM is stopped, and can be started anew"
	case operation.DisksMoved:
		refuse.Message = fmt.Sprintf("its disks were copied to %s, and are recorded there: the source's copy writes to disks that are not the VM's any more", node)
		refuse.NextStep = "keep the target, or none"
	}
	return refuse
}
