package lifecycle

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// CancelOperation asks for a live operation to be given up. A migration is aborted while it copies; a start is not placed again; what
// no node has begun for its silence never is. It returns the operation as it is then; how it ends is told by the operation itself.
func (o *Operations) CancelOperation(ctx context.Context, id, caller string) (operation.Operation, error) {
	for range lead.MostReplans {
		snapshot := o.Store.Snapshot()
		op, known := snapshot.Operation(id)
		switch {
		case !known:
			return operation.Operation{}, &lead.Error{
				Code: lead.NotFound, Subject: "operation/" + id, Message: fmt.Sprintf("there is no operation %q", id),
				NextStep: "see 'berth operation list'",
			}
		case !op.Live():
			return op, &lead.Error{
				Code: lead.Conflict, Subject: "operation/" + id, Operation: id,
				Message: fmt.Sprintf("operation %s has ended already (%s)", id, op.Outcome()), NextStep: "nothing is left to cancel",
			}
		case op.Bound() != operation.Bound{} && (!op.TakesBack() || o.Heard(op.Source)):
			bound := op.Bound()
			return op, &lead.Error{
				Code: lead.Conflict, Subject: "operation/" + id, Operation: id, Message: bound.Why, NextStep: bound.NextStep,
			}
		}
		op.Cancel = true
		op.UpdatedAt = o.Now()
		result, err := o.Proposer.Propose(ctx, state.Command{
			Key: o.NewID(), Kind: "cancel operation", Caller: caller, At: op.UpdatedAt,
			Expect:     []state.Expectation{{Table: state.Operations, ID: id, Revision: op.Revision}},
			Operations: []operation.Operation{op},
			Events:     []model.Event{EventOf(op, caller, "operation.cancel", "cancel asked for")},
		})
		if err != nil {
			return op, err
		}
		if result.Refusal == nil {
			op.Revision = result.Index
			o.mu.Lock()
			if r := o.runners[id]; r != nil {
				r.wake()
			}
			o.mu.Unlock()
			return op, nil
		}
	}
	return operation.Operation{}, lead.TooBusy("operation/" + id)
}
