package api

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/control"
	berthv1 "berth/shared/gen/berth/v1"
)

// Spread tells how a customer's VMs are spread. It names nothing but the customer: not even where a VM is not.
func (s *Server) Spread(
	ctx context.Context, request *connect.Request[berthv1.SpreadRequest],
) (*connect.Response[berthv1.SpreadResponse], error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	customer, err := p.resource(cluster.KindCustomer, request.Msg.GetCustomer())
	if err != nil {
		return nil, err
	}
	spread, err := whenLeading(ctx, s, func() (control.Spread, error) { return s.Control.Spread(customer.ID) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(wire.Spread(customer.Name, spread)), nil
}
