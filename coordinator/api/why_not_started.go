package api

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/explain"
	"berth/coordinator/api/refusal"
	berthv1 "berth/shared/gen/berth/v1"
)

// WhyNotStarted tells whether a VM may be started, and what every node says of it: so that the one who waits sees which word or which
// machine is waited for.
func (s *queryCalls) WhyNotStarted(
	ctx context.Context, request *connect.Request[berthv1.WhyNotStartedRequest],
) (*connect.Response[berthv1.WhyNotStartedResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, known := p.VMByRef(request.Msg.GetVm())
	if !known {
		return nil, refusal.NotFound("vm", request.Msg.GetVm())
	}
	return answer.WhenLeading(ctx, s.Source, func() (*connect.Response[berthv1.WhyNotStartedResponse], error) {
		return connect.NewResponse(explain.NotStarted(s.Control.Survey(p.Snapshot), &vm)), nil
	})
}
