package hypervisor

import (
	"context"
	"sync"
)

// maxQueue bounds what one slow subscriber can hold. More than that and it is told to look at everything.
const maxQueue = 4096

// Feed hands events to subscribers. The zero value is ready. Implementations of Hypervisor embed it.
type Feed struct {
	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
	// early is what guests were found to run with before anybody subscribed. The first subscriber alone is told: an agent has one, for as
	// long as it lives, which keeps what it is told over all its connections to coordinators. Who comes later asks what guests run with.
	early []Event
}

type subscriber struct {
	mu    sync.Mutex
	queue []Event
	ready chan struct{}
}

// Publish gives the event to every subscriber and never blocks, so a hypervisor's event loop may call it.
func (f *Feed) Publish(event Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subscribers == nil && event.Kind == EventRan && len(f.early) < maxQueue {
		f.early = append(f.early, event)
	}
	for s := range f.subscribers {
		s.add(event)
	}
}

func (s *subscriber) add(event Event) {
	s.mu.Lock()
	if len(s.queue) >= maxQueue {
		s.queue = []Event{{Kind: EventReconnected, Detail: "too many events at once"}}
	} else {
		s.queue = append(s.queue, event)
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Subscribe implements Hypervisor.
func (f *Feed) Subscribe(ctx context.Context, deliver func(Event)) error {
	s := &subscriber{ready: make(chan struct{}, 1)}
	f.mu.Lock()
	if f.subscribers == nil {
		f.subscribers = map[*subscriber]struct{}{}
		for _, event := range f.early {
			s.add(event)
		}
		f.early = nil
	}
	f.subscribers[s] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.subscribers, s)
		f.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ready:
		}
		s.mu.Lock()
		events := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, event := range events {
			deliver(event)
		}
	}
}
