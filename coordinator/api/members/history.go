package members

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/refusal"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// FetchHistory answers with a part of what this member has kept of the past.
func (s *Calls) FetchHistory(
	_ context.Context, request *connect.Request[berthv1.FetchHistoryRequest],
) (*connect.Response[berthv1.FetchHistoryResponse], error) {
	page, err := s.History.Page(request.Msg.GetAfter(), request.Msg.GetThrough())
	if err != nil {
		return nil, refusal.New(rpc.Unavailable, "", "ask another coordinator, or this one later", "%v", err)
	}
	return connect.NewResponse(&berthv1.FetchHistoryResponse{Block: page.Block, Begins: page.Begins}), nil
}
