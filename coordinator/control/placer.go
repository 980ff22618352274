package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// retry says why a decision has to be made again.
type retry int

const (
	decided   retry = iota
	moved           // the state moved on under the decision
	unsettled       // refused, but this leader has not heard of all nodes yet
)

// unsettledPause is between two looks at a picture that is still coming together after a failover.
const unsettledPause = 100 * time.Millisecond

// plan decides and commits, one request at a time, so that each decision sees the ones before it. See again.
func (c *Control) plan(ctx context.Context, subject string, once func() (retry, error)) error {
	return again(ctx, subject, func() (retry, error) {
		c.placing.Lock()
		defer c.placing.Unlock()
		return once()
	})
}

// again decides again when the state moved on, a few times, and while the picture is not whole, as long as that lasts.
func again(ctx context.Context, subject string, once func() (retry, error)) error {
	for replans := 0; replans < maxReplans; {
		again, err := once()
		switch again {
		case decided:
			return err
		case moved:
			replans++
		case unsettled:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(unsettledPause):
			}
		}
	}
	return errTooBusy(subject)
}

// settled tells whether every node has had its say. It is asked before the view is made: a node that reports between the
// two must not make a refusal final that was decided without it.
func (c *Control) settled(snapshot *state.Snapshot) bool {
	return c.Inventory.Settled(snapshot, c.Now())
}

// rallied tells whether plans may begin moves, and balancing make any: every node has reported to this leader, those that are
// proven to be off left out, or FenceGrace has passed since the leadership began. Starts do not wait as long, because people
// wait for them.
func (c *Control) rallied(snapshot *state.Snapshot) bool {
	at := c.Now()
	c.mu.Lock()
	led := at.Sub(c.since)
	c.mu.Unlock()
	return led >= FenceGrace || !slices.ContainsFunc(snapshot.Nodes(), func(node cluster.Node) bool {
		facts := c.Inventory.Facts(node.ID, at)
		return !node.Fenced() && (!facts.Inventory || !facts.Telemetry)
	})
}

// crowded tells whether people wait for the leader.
func (c *Control) crowded() bool { return c.Crowded != nil && c.Crowded() }

// beginning is the first record of an operation.
type beginning struct {
	operation.Next
	snapshot   *state.Snapshot    // that it was decided on
	decision   placement.Decision // ID is empty if none was made
	vmRevision uint64             // that the operation was decided on
	read       []state.Expectation
	made       *cluster.Resource  // a disk that is made with the VM's record
	changed    []cluster.Resource // resources that the operation changes at once
}

// begin commits the first record of an operation and sets its runner going. It reports again when the decision was made
// on a state that is no more: the VM, the target or something else that was read has changed.
func (c *Control) begin(ctx context.Context, first beginning) (started Started, again retry, err error) {
	result, err := c.propose(ctx, c.commandOf(&first))
	return c.begun(&first, result, err)
}

// commandOf is the command that commits the first record of an operation.
func (c *Control) commandOf(first *beginning) state.Command {
	op := &first.Operation
	command := state.Command{
		Key: op.Request, Kind: string(op.Kind) + " vm", Caller: op.Caller, At: op.UpdatedAt,
		Expect: append([]state.Expectation{
			{Table: state.VMs, ID: op.VM, Revision: first.vmRevision},
			{Table: state.Operations, ID: op.ID},
		}, first.read...),
		VMs: []cluster.VM{first.VM}, Operations: []operation.Operation{*op},
		Events: []cluster.Event{c.event(*op, op.Caller, "vm."+string(op.Kind), beginText(*op))},
	}
	if command.Key == "" {
		command.Key = op.ID
	}
	if first.made != nil {
		create(&command, *first.made)
	}
	for i := range first.changed {
		change(&command, first.changed[i])
	}
	if first.decision.ID != "" {
		first.decision.Operation = op.ID
		command.Decisions = []placement.Decision{first.decision}
		command.Expect = append(command.Expect, unmoved(first.snapshot, op.Target))
	}
	return command
}

// begun is what came of committing the first record of an operation.
func (c *Control) begun(first *beginning, result state.Result, err error) (started Started, again retry, _ error) {
	switch {
	case err != nil:
		return Started{}, decided, err
	case result.Refusal != nil && result.Refusal.Code == state.Stale:
		return Started{}, moved, nil
	case result.Refusal != nil:
		return Started{}, decided, fromRefusal(result.Refusal, first.Operation.VMName)
	}
	first.Operation.Revision, first.VM.Revision = result.Index, result.Index
	c.drive(first.Operation.ID)
	return Started{Operation: first.Operation, Decision: first.decision, VM: first.VM}, decided, nil
}

// unmoved expects the record of a node that was decided for.
func unmoved(snapshot *state.Snapshot, id string) state.Expectation {
	node, _ := snapshot.Node(id)
	return state.Expectation{Table: state.Nodes, ID: id, Revision: node.Revision}
}

// record keeps a decision that led to no operation.
func (c *Control) record(ctx context.Context, decision placement.Decision) error {
	_, err := c.propose(ctx, state.Command{
		Key: decision.ID, Kind: "record decision", Caller: decision.Caller, At: decision.At,
		Decisions: []placement.Decision{decision},
		Events: []cluster.Event{{
			At: decision.At, Kind: "decision." + string(decision.Outcome), Subject: "vm/" + decision.Request.VMName,
			Message: decision.Reason, Caller: decision.Caller, Decision: decision.ID,
		}},
	})
	return err
}

// recordRefusal keeps the decision and returns it as the error that it is. Not being able to keep it changes nothing
// about the answer.
func (c *Control) recordRefusal(ctx context.Context, decision placement.Decision) error {
	if err := c.record(ctx, decision); err != nil {
		c.Logger.Warn("a refused decision could not be kept", "decision", decision.ID, "error", err)
	}
	return refusalOf(decision)
}

func refusalOf(decision placement.Decision) error {
	if decision.Outcome != placement.Refused {
		return nil
	}
	next := fmt.Sprintf("see 'berth decision show %s'", decision.ID)
	if decision.DryRun {
		next = "free memory on a node, take one out of maintenance, or ask for less"
	}
	return &Error{
		Code: NoNodeFits, Subject: "vm/" + decision.Request.VMName, Message: decision.Reason, NextStep: next, Decision: &decision,
	}
}

func fromRefusal(refusal *state.Refusal, vm string) *Error {
	code, next := Invalid, "this is a defect of berth: please report it with 'berth operation list' and the coordinator's log"
	switch refusal.Code {
	case state.NameTaken:
		code, next = Exists, "choose another name"
	case state.InUse:
		code, next = Conflict, "name another disk or NIC, or take this one from the VM that has it"
	}
	return &Error{Code: code, Subject: "vm/" + vm, Message: refusal.Message, NextStep: next}
}

func busy(snapshot *state.Snapshot, vm cluster.VM) error {
	what := "an operation"
	if op, known := snapshot.Operation(vm.Operation); known {
		what = fmt.Sprintf("operation %s (%s, %s)", op.ID, op.Kind, op.Phase)
		if op.Result == operation.Parked {
			return &Error{
				Code: Busy, Subject: "vm/" + vm.Name, Operation: op.ID,
				Message:  fmt.Sprintf("VM %q is locked by the parked operation %s: %s", vm.Name, op.ID, op.Message),
				NextStep: fmt.Sprintf("see 'berth operation show %s' for what both nodes show", op.ID),
			}
		}
	}
	return &Error{
		Code: Busy, Subject: "vm/" + vm.Name, Operation: vm.Operation,
		Message:  fmt.Sprintf("%s works on VM %q", what, vm.Name),
		NextStep: fmt.Sprintf("wait for it with 'berth operation watch %s'", vm.Operation),
	}
}

// operationOf finds the operation that a request made before. Newest first, so that a retry finds it at once.
func operationOf(snapshot *state.Snapshot, requestID string) (operation.Operation, bool) {
	if requestID == "" {
		return operation.Operation{}, false
	}
	return snapshot.OperationByRequest(requestID)
}

func nodeName(snapshot *state.Snapshot, id string) string {
	if node, known := snapshot.Node(id); known {
		return node.Name
	}
	return id
}
