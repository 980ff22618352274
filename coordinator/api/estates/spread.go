package estates

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// Spread tells how a customer's VMs are spread. It names nothing but the customer: not even where a VM is not.
func (s *ResourceCalls) Spread(
	ctx context.Context, request *connect.Request[berthv1.SpreadRequest],
) (*connect.Response[berthv1.SpreadResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	customer, err := p.NamedResource(model.KindCustomer, request.Msg.GetCustomer())
	if err != nil {
		return nil, err
	}
	spread, err := answer.WhenLeading(ctx, s.Source, func() (plans.Spread, error) { return s.Control.Spread(customer.ID) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(wire.Spread(customer.Name, spread)), nil
}
