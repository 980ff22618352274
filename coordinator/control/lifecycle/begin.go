package lifecycle

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/shared/capability"
)

// BeginOperation commits the first record of an operation and sets its runner going. It reports again when the decision was made
// on a state that is no more: the VM, the target or something else that was read has changed.
func (o *Operations) BeginOperation(ctx context.Context, first First) (started Started, again lead.Retry, err error) {
	if err := o.tellable(&first); err != nil {
		return Started{}, lead.Decided, err
	}
	result, err := o.Propose(ctx, o.commandOf(&first))
	return o.begun(&first, result, err)
}

// tellable refuses an operation with an order that an agent would obey in part only, because it is of another release.
func (o *Operations) tellable(first *First) error {
	for _, order := range operation.Ahead(first.Operation, first.VM) {
		if lacks := o.Agents.Lacks(order); len(lacks) > 0 {
			name := lead.NodeName(o.Store.Snapshot(), order.Node)
			return &lead.Error{
				Code: lead.Conflict, Subject: "node/" + name,
				Message: fmt.Sprintf("VM %q: %s", first.Operation.VMName,
					capability.Refused(name, o.Inventory.Facts(order.Node, o.Now()).Release, lacks)),
				NextStep: "update it on " + name + ": " + capability.Update,
			}
		}
	}
	return nil
}

// commandOf is the command that commits the first record of an operation.
func (o *Operations) commandOf(first *First) state.Command {
	op := &first.Operation
	command := state.Command{
		Key: op.Request, Kind: string(op.Kind) + " vm", Caller: op.Caller, At: op.UpdatedAt,
		Expect: append([]state.Expectation{
			{Table: state.VMs, ID: op.VM, Revision: first.Revision},
			{Table: state.Operations, ID: op.ID},
		}, first.Read...),
		VMs: []model.VM{first.VM}, Operations: []operation.Operation{*op},
		Events: []model.Event{EventOf(*op, op.Caller, "vm."+string(op.Kind), op.Begun())},
	}
	if command.Key == "" {
		command.Key = op.ID
	}
	if first.made != nil {
		lead.Create(&command, *first.made)
	}
	for i := range first.changed {
		lead.Change(&command, first.changed[i])
	}
	if first.decision.ID != "" {
		first.decision.Operation = op.ID
		command.Decisions = []placement.Decision{first.decision}
		command.Expect = append(command.Expect, NodeUnmoved(first.snapshot, op.Target))
	}
	return command
}

// begun is what came of committing the first record of an operation.
func (o *Operations) begun(first *First, result state.Result, err error) (started Started, again lead.Retry, _ error) {
	switch {
	case err != nil:
		return Started{}, lead.Decided, err
	case result.Refusal != nil && result.Refusal.Code == state.Stale:
		return Started{}, lead.Stale, nil
	case result.Refusal != nil:
		return Started{}, lead.Decided, lead.RefusalOf(result.Refusal, first.Operation.VMName)
	}
	first.Operation.Revision, first.VM.Revision = result.Index, result.Index
	o.drive(first.Operation.ID)
	return Started{Operation: first.Operation, Decision: first.decision, VM: first.VM}, lead.Decided, nil
}
