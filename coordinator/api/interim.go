package api

import (
	"context"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// AdoptVMs takes running domains under management.
func (s *Server) AdoptVMs(
	context.Context, *connect.Request[berthv1.AdoptVMsRequest],
) (*connect.Response[berthv1.AdoptVMsResponse], error) {
	return nil, connect.NewError(connect.CodeUnimplemented, nil)
}

// ReleaseVM gives a VM back.
func (s *Server) ReleaseVM(
	context.Context, *connect.Request[berthv1.ReleaseVMRequest],
) (*connect.Response[berthv1.ReleaseVMResponse], error) {
	return nil, connect.NewError(connect.CodeUnimplemented, nil)
}

// ResolveOperation ends a parked operation by an operator's word.
func (s *Server) ResolveOperation(
	context.Context, *connect.Request[berthv1.ResolveOperationRequest],
) (*connect.Response[berthv1.ResolveOperationResponse], error) {
	return nil, connect.NewError(connect.CodeUnimplemented, nil)
}
