package lifecycle

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// NodeUnmoved expects the record of a node that was decided for.
func NodeUnmoved(snapshot *state.Snapshot, id string) state.Expectation {
	node, _ := snapshot.Node(id)
	return state.Expectation{Table: state.Nodes, ID: id, Revision: node.Revision}
}

// record keeps a decision that led to no operation.
func (p *Placer) record(ctx context.Context, decision placement.Decision) error {
	_, err := p.Propose(ctx, state.Command{
		Key: decision.ID, Kind: "record decision", Caller: decision.Caller, At: decision.At,
		Decisions: []placement.Decision{decision},
		Events: []model.Event{{
			At: decision.At, Kind: "decision." + string(decision.Outcome), Subject: "vm/" + decision.Request.VMName,
			Message: decision.Reason, Caller: decision.Caller, Decision: decision.ID,
		}},
	})
	return err
}

// RecordRefusal keeps the decision and returns it as the error that it is. Not being able to keep it changes nothing
// about the answer.
func (p *Placer) RecordRefusal(ctx context.Context, decision placement.Decision) error {
	if err := p.record(ctx, decision); err != nil {
		p.Logger.Warn("a refused decision could not be kept", "decision", decision.ID, "error", err)
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
	return &lead.Error{
		Code: lead.NoNodeFits, Subject: "vm/" + decision.Request.VMName, Message: decision.Reason, NextStep: next, Decision: &decision,
	}
}

// OperationOf finds the operation that a request made before. Newest first, so that a retry finds it at once.
func OperationOf(snapshot *state.Snapshot, requestID string) (operation.Operation, bool) {
	if requestID == "" {
		return operation.Operation{}, false
	}
	return snapshot.OperationByRequest(requestID)
}
