package api

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// leaderCheck is how often a quiet stream of events looks whether this member still leads.
const leaderCheck = time.Second

// WatchEvents sends the last events, oldest first, and with follow everything that happens from then on. A watcher that
// reads slowly slows nobody: events wait in the state, as many as that keeps.
func (s *Server) WatchEvents(
	ctx context.Context, request *connect.Request[berthv1.WatchEventsRequest],
	stream *connect.ServerStream[berthv1.WatchEventsResponse],
) error {
	backlog, err := limited(request.Msg.GetBacklog(), 0, state.MaxEvents)
	if err != nil {
		return invalid("", "leave it out, or give a number above 0", err)
	}
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return err
	}
	snapshot := s.Store.Snapshot()
	ticker := time.NewTicker(leaderCheck)
	defer ticker.Stop()
	var events []cluster.Event
	if backlog > 0 {
		events = snapshot.Events(backlog)
	}
	for {
		for _, event := range events {
			if err := stream.Send(&berthv1.WatchEventsResponse{Event: wire.Event(event)}); err != nil {
				return err
			}
		}
		if !request.Msg.GetFollow() {
			return nil
		}
		seen := snapshot.Index()
		if err := s.next(ctx, snapshot, ticker.C); err != nil {
			return err
		}
		snapshot = s.Store.Snapshot()
		events = snapshot.EventsAfter(seen)
	}
}
