package explain

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/history"
	"berth/coordinator/placement"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// decisionOutcome begins the names of the outcomes of decisions in the protocol.
const decisionOutcome = "DECISION_OUTCOME_"

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
	filter, err := p.FilterOf(request.Msg.GetFilter(),
		p.Happened("decision", answer.Words(berthv1.DecisionOutcome_name, decisionOutcome), placement.PurposeNames()))
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListDecisionsResponse{SchemaVersion: wire.SchemaVersion, Filtered: filter.Asked()}
	wanted := about(request.Msg.GetVm())
	query := filter.Query()
	if query.Before, err = page.InPast(); err != nil {
		return nil, err
	}
	// The state copies what it hands out. So it is asked for a few more at a time, and what a filter leaves out is dropped at once.
	for after, more := page.After, query.Before == nil; more; {
		decisions := p.DecisionsAbout(page.Limit+1, after, func(r *placement.Request) bool {
			return wanted(r) && filter.About(r.VM, r.VMName) && filter.OfKind(string(r.Purpose)) && filter.WhoseID(r.VM)
		})
		more = len(decisions) > page.Limit && !filter.Before(decisions[page.Limit].At)
		for _, decision := range decisions {
			after = decision.ID
			if !filter.Decision(&decision) {
				continue
			}
			message := wire.DecisionSummary(decision)
			if !filter.Is(answer.Word(message.GetOutcome().String(), decisionOutcome)) {
				continue
			}
			if len(response.GetDecisions()) == page.Limit {
				response.NextPageToken = answer.TokenOf(response.GetDecisions()[page.Limit-1].GetId())
				return connect.NewResponse(response), nil
			}
			response.Decisions = append(response.Decisions, message)
		}
	}
	older, next, err := answer.ReadOn(ctx, s.Source, p, query, page.Limit-len(response.GetDecisions()),
		func(row *history.Row) (*berthv1.Decision, bool) {
			if row.Decision == nil || !wanted(&row.Decision.Request) || !filter.Decision(row.Decision) {
				return nil, false
			}
			if _, kept := p.Decision(row.Decision.ID); kept {
				return nil, false
			}
			message := wire.DecisionSummary(*row.Decision)
			return message, filter.Is(answer.Word(message.GetOutcome().String(), decisionOutcome))
		})
	response.Decisions, response.NextPageToken = append(response.GetDecisions(), older...), next
	return connect.NewResponse(response), err
}

// about tells whether a decision is about a VM, by name or ID; about any if none is given. Decisions are kept after their
// VM is gone, so the name need not be one of today.
func about(ref string) func(*placement.Request) bool {
	return func(r *placement.Request) bool { return ref == "" || r.VMName == ref || r.VM == ref }
}

// decision is the one that a question names, also one that the state has dropped.
func (s *DecisionCalls) decision(ctx context.Context, p *answer.Moment, id string) (placement.Decision, error) {
	decision, known, err := s.FindDecision(ctx, p, id)
	if err == nil && !known {
		err = refusal.NotFound("decision", id)
	}
	return decision, err
}

// GetDecision answers with one decision, every node and why.
func (s *DecisionCalls) GetDecision(
	ctx context.Context, request *connect.Request[berthv1.GetDecisionRequest],
) (*connect.Response[berthv1.GetDecisionResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	decision, err := s.decision(ctx, p, request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetDecisionResponse{
		SchemaVersion: wire.SchemaVersion, Decision: wire.Decision(decision),
	}), nil
}
