package explain

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/placement"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// ListDecisions answers with the newest decisions, without their nodes.
func (s *DecisionCalls) ListDecisions(
	ctx context.Context, request *connect.Request[berthv1.ListDecisionsRequest],
) (*connect.Response[berthv1.ListDecisionsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.DefaultList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	decisions := p.DecisionsAbout(page.Limit+1, page.After, about(request.Msg.GetVm()))
	response := &berthv1.ListDecisionsResponse{SchemaVersion: wire.SchemaVersion}
	if len(decisions) > page.Limit {
		decisions = decisions[:page.Limit]
		response.NextPageToken = answer.TokenOf(decisions[page.Limit-1].ID)
	}
	for _, decision := range decisions {
		response.Decisions = append(response.Decisions, wire.DecisionSummary(decision))
	}
	return connect.NewResponse(response), nil
}

// about tells whether a decision is about a VM, by name or ID; about any if none is given. Decisions are kept after their
// VM is gone, so the name need not be one of today.
func about(ref string) func(*placement.Request) bool {
	return func(r *placement.Request) bool { return ref == "" || r.VMName == ref || r.VM == ref }
}

// GetDecision answers with one decision, every node and why.
func (s *DecisionCalls) GetDecision(
	ctx context.Context, request *connect.Request[berthv1.GetDecisionRequest],
) (*connect.Response[berthv1.GetDecisionResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	decision, known := p.Decision(request.Msg.GetId())
	if !known {
		return nil, refusal.NotFound("decision", request.Msg.GetId())
	}
	return connect.NewResponse(&berthv1.GetDecisionResponse{
		SchemaVersion: wire.SchemaVersion, Decision: wire.Decision(decision),
	}), nil
}
