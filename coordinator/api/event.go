package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/history"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// leaderCheck is how often a quiet stream of events looks whether this member still leads.
const leaderCheck = time.Second

// eventsLost is the kind of the event that tells a watcher that it has missed some.
const eventsLost = "events.lost"

// WatchEvents sends the last events, oldest first, and with follow everything that happens from then on, together with
// what only the leader sees: nodes that fall silent and come back, and VMs that run twice. A watcher that reads slowly
// slows nobody: events wait in the state, as many as that keeps, and a thousand of what only the leader sees. Who falls
// further behind is told that some are lost, and has to read the lists anew. The backlog has the last that the filter lets through.
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
	first := s.Present()
	filter, err := first.FilterOf(request.Msg.GetFilter(), first.Happened("event", nil, nil))
	if err != nil {
		return err
	}
	// At once: a quiet cluster is not a silent coordinator.
	if err := stream.Send(begun(filter)); err != nil {
		return err
	}
	seen := s.Inventory.Subscribe()
	defer seen.Close()
	snapshot := s.Store.Snapshot()
	past, err := s.backlog(ctx, snapshot, filter, backlog)
	if err != nil {
		return err
	}
	if err := sendEvents(stream, past...); err != nil {
		return err
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
		if err := sendEvents(stream, s.asked(snapshot, filter, events)...); err != nil {
			return err
		}
		if err := s.Leads(); err != nil {
			return err
		}
	}
}

// begun is the first message of a stream: without a filter it is only the headers.
func begun(filter *answer.Filter) *berthv1.WatchEventsResponse {
	if !filter.Asked() {
		return nil
	}
	return &berthv1.WatchEventsResponse{Filtered: true}
}

// backlog are the last events that a filter lets through, at most limit of them. Those that the state does not have any more are read from
// the history.
func (s *queryCalls) backlog(
	ctx context.Context, snapshot *state.Snapshot, filter *answer.Filter, limit int,
) ([]model.Event, error) {
	switch {
	case limit == 0:
		return nil, nil
	case !filter.Asked() && limit <= state.MaxEvents/2:
		return snapshot.Events(limit), nil
	}
	events := s.asked(snapshot, filter, snapshot.Events(state.MaxEvents))
	from := snapshot.HistoryFrom()
	if len(events) >= limit || from == 0 || s.History.Whole() < from {
		return events[max(len(events)-limit, 0):], nil
	}
	events = slices.DeleteFunc(events, func(event model.Event) bool { return event.Index <= from }) // the history has them all
	slices.Reverse(events)
	p := &answer.Moment{Snapshot: snapshot, At: s.Now(), Soft: s.Inventory}
	older, _, err := answer.ReadOn(ctx, s.Source, p, filter.Query(), limit-len(events), func(row *history.Row) (model.Event, bool) {
		if row.Event == nil || !filter.Event(p, row.Event) {
			return model.Event{}, false
		}
		return *row.Event, true
	})
	events = append(events, older...)
	slices.Reverse(events)
	return events, err
}

// asked are those of the events that a filter lets through, and what tells of loss.
func (s *queryCalls) asked(snapshot *state.Snapshot, filter *answer.Filter, events []model.Event) []model.Event {
	if !filter.Asked() {
		return events
	}
	p := &answer.Moment{Snapshot: snapshot, At: s.Now(), Soft: s.Inventory}
	return slices.DeleteFunc(events, func(event model.Event) bool {
		return event.Kind != eventsLost && !filter.Event(p, &event)
	})
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
		At: at, Kind: eventsLost, Subject: "cluster",
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
