package inventory

import (
	"context"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// EventKind says what an Event tells of.
type EventKind string

// The kinds of event.
const (
	LivenessChanged  EventKind = "liveness"  // Node, Liveness, LivenessWas (empty: first heard), What
	DomainChanged    EventKind = "domain"    // Node, Domain, DomainWas, What (libvirt's event, if one told of it)
	ProgressReported EventKind = "progress"  // Node, Operation
	DuplicateFound   EventKind = "duplicate" // Duplicate
	EventsLost       EventKind = "lost"      // the subscriber was too slow: read everything anew
)

// Event is something that was seen. Which fields mean something depends on the kind.
type Event struct {
	Kind        EventKind
	At          time.Time
	Node        string // ID
	Liveness    model.Liveness
	LivenessWas model.Liveness
	What        string // in words
	Domain      model.Domain
	DomainWas   model.DomainState
	Operation   string
	Duplicate   Duplicate
}

// subscriberBuffer is how many events a subscriber may be behind.
const subscriberBuffer = 1000

// Subscription is a stream of events from its beginning on.
type Subscription struct {
	// C gives the events. It is never closed.
	C <-chan Event

	events chan Event
	lost   bool
	store  *Store
}

// Subscribe begins a subscription. One that falls too far behind misses events and is told so by EventsLost; it never
// holds anybody up.
func (s *Store) Subscribe() *Subscription {
	events := make(chan Event, subscriberBuffer)
	subscription := &Subscription{C: events, events: events, store: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed.subscriptions = append(s.feed.subscriptions, subscription)
	return subscription
}

// Close ends the subscription.
func (x *Subscription) Close() {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	x.store.feed.subscriptions = slices.DeleteFunc(x.store.feed.subscriptions, func(other *Subscription) bool {
		return other == x
	})
}

// feed hands events to subscribers. It is guarded by the store's lock.
type feed struct{ subscriptions []*Subscription }

func (f *feed) publish(event Event) {
	for _, x := range f.subscriptions {
		if !x.caughtUp(event.At) {
			continue
		}
		select {
		case x.events <- event:
		default:
			x.lost = true
		}
	}
}

// caughtUp tells a subscriber that lost events so, and whether it can take more.
func (x *Subscription) caughtUp(at time.Time) bool {
	if !x.lost {
		return true
	}
	select {
	case x.events <- Event{Kind: EventsLost, At: at}:
		x.lost = false
		return true
	default:
		return false
	}
}

// watchEvery is how often silence is looked for.
const watchEvery = time.Second

// Watch publishes what only the passing of time shows: nodes that fall silent, copies of a VM that last. It works for the
// nodes of the records that the function gives, and ends with the context.
func (s *Store) Watch(ctx context.Context, records func() *state.Snapshot) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.look(records())
		}
	}
}

func (s *Store) look(records *state.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.turning.audit(now)
	turnNow(s, records, now)
	for _, found := range s.copies.lasting(now) {
		s.feed.publish(Event{Kind: DuplicateFound, At: now, Duplicate: found})
	}
	for _, x := range s.feed.subscriptions {
		x.caughtUp(now)
	}
}

// publishLiveness tells of a node's liveness if it is not what was told last. A node that may still come after the
// leadership began is not told of.
func (s *Store) publishLiveness(id string, now time.Time) {
	known := s.nodes[id]
	is, why := s.liveness(known, now)
	if known == nil {
		if is == model.Suspect {
			return
		}
		known = s.node(id)
	}
	if known.published == is {
		return
	}
	s.feed.publish(Event{
		Kind: LivenessChanged, At: now, Node: id, Liveness: is, LivenessWas: known.published, What: why,
	})
	known.published = is
	s.stirred.note(id)
}
