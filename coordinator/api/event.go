package api

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// leaderCheck is how often a quiet stream of events looks whether this member still leads.
const leaderCheck = time.Second

// WatchEvents sends the last events, oldest first, and with follow everything that happens from then on, together with
// what only the leader sees: nodes that fall silent and come back, and VMs that run twice. A watcher that reads slowly
// slows nobody: events wait in the state, as many as that keeps, and a thousand of what only the leader sees. Who falls
// further behind is told that some are lost, and has to read the lists anew.
func (s *queryCalls) WatchEvents(
	ctx context.Context, request *connect.Request[berthv1.WatchEventsRequest],
	stream *connect.ServerStream[berthv1.WatchEventsResponse],
) error {
	backlog, err := answer.Limited(request.Msg.GetBacklog(), 0, state.MaxEvents)
	if err != nil {
		return refusal.Invalid("", "leave it out, or give a number above 0", err)
	}
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return err
	}
	// The headers at once: a quiet cluster is not a silent coordinator.
	if err := stream.Send(nil); err != nil {
		return err
	}
	seen := s.Inventory.Subscribe()
	defer seen.Close()
	snapshot := s.Store.Snapshot()
	if backlog > 0 {
		if err := sendEvents(stream, snapshot.Events(backlog)...); err != nil {
			return err
		}
	}
	if !request.Msg.GetFollow() {
		return nil
	}
	ticker := time.NewTicker(leaderCheck)
	defer ticker.Stop()
	for {
		var events []model.Event
		select {
		case soft := <-seen.C:
			events = s.softEvents(soft)
		case <-snapshot.Changed():
			last := snapshot.Index()
			snapshot = s.Store.Snapshot()
			if !snapshot.EventsKept(last) {
				events = lostEvents(s.Now())
			}
			events = append(events, snapshot.EventsAfter(last)...)
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Stopping:
			return stopping()
		}
		if err := sendEvents(stream, events...); err != nil {
			return err
		}
		if err := s.Leads(); err != nil {
			return err
		}
	}
}

// softEvents are what is told of something that only the leader saw.
func (s *queryCalls) softEvents(seen inventory.Event) []model.Event {
	names := (&answer.Moment{Snapshot: s.Store.Snapshot()}).NodeName
	switch seen.Kind {
	case inventory.LivenessChanged:
		message := "is heard"
		if seen.Liveness != model.Up {
			message = answer.Because("is "+string(seen.Liveness), seen.What)
		}
		return []model.Event{{
			At: seen.At, Kind: "node." + string(seen.Liveness), Subject: "node/" + names(seen.Node), Message: message,
		}}
	case inventory.DuplicateFound:
		nodes := make([]string, 0, len(seen.Duplicate.Nodes))
		for _, id := range seen.Duplicate.Nodes {
			nodes = append(nodes, names(id))
		}
		return []model.Event{{
			At: seen.At, Kind: "vm.duplicate", Subject: "vm/" + seen.Duplicate.Name,
			Message: "is on " + strings.Join(nodes, " and ") + " at the same time: look at once",
		}}
	case inventory.EventsLost:
		return lostEvents(seen.At)
	default:
		return nil
	}
}

// lostEvents tell a watcher that was too slow to begin anew.
func lostEvents(at time.Time) []model.Event {
	return []model.Event{{
		At: at, Kind: "events.lost", Subject: "cluster",
		Message: "this watcher was too slow: some events are missing here, so read what there is anew",
	}}
}

func sendEvents(stream *connect.ServerStream[berthv1.WatchEventsResponse], events ...model.Event) error {
	for _, event := range events {
		if err := stream.Send(&berthv1.WatchEventsResponse{Event: wire.Event(event)}); err != nil {
			return err
		}
	}
	return nil
}
