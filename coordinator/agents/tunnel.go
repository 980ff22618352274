package agents

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"berth/coordinator/control"
	berthv1 "berth/shared/gen/berth/v1"
)

// Tunnel is not there yet.
func (s *Server) Tunnel(context.Context, *connect.BidiStream[berthv1.TunnelRequest, berthv1.TunnelResponse]) error {
	return connect.NewError(connect.CodeUnimplemented, errors.New("this release has no tunnels yet"))
}

// Perform is not there yet.
func (s *Server) Perform(context.Context, string, control.Task) (control.TaskDone, error) {
	return control.TaskDone{}, &control.TaskError{Code: "unsupported", Message: "this release has no tasks yet"}
}
