package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

var errNotYet = connect.NewError(connect.CodeUnimplemented, errors.New("this release cannot do that yet"))

// ImportImage is not there yet.
func (s *Server) ImportImage(
	context.Context, *connect.ClientStream[berthv1.ImportImageRequest],
) (*connect.Response[berthv1.ImportImageResponse], error) {
	return nil, errNotYet
}

// GrowDisk is not there yet.
func (s *Server) GrowDisk(
	context.Context, *connect.Request[berthv1.GrowDiskRequest],
) (*connect.Response[berthv1.GrowDiskResponse], error) {
	return nil, errNotYet
}

// ListPools is not there yet.
func (s *Server) ListPools(
	context.Context, *connect.Request[berthv1.ListPoolsRequest],
) (*connect.Response[berthv1.ListPoolsResponse], error) {
	return nil, errNotYet
}

// Spread is not there yet.
func (s *Server) Spread(
	context.Context, *connect.Request[berthv1.SpreadRequest],
) (*connect.Response[berthv1.SpreadResponse], error) {
	return nil, errNotYet
}

// Console is not there yet.
func (s *Server) Console(context.Context, *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
	return errNotYet
}
