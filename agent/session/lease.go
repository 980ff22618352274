package session

import (
	"sync"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// sent keeps when the last samples were sent, by sequence.
type sent struct {
	mu   sync.Mutex
	ring [64]struct {
		sequence uint64
		at       time.Time
	}
	next int
}

func (s *sent) note(sequence uint64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[s.next].sequence, s.ring[s.next].at = sequence, at
	s.next = (s.next + 1) % len(s.ring)
}

// at is when a sample was sent; false if that is not known any more, or it was never sent.
func (s *sent) at(sequence uint64) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ring {
		if one := &s.ring[i]; one.sequence == sequence && sequence > 0 {
			return one.at, true
		}
	}
	return time.Time{}, false
}

// leased takes a lease. The lease begins when the report that it answers was sent, because the answer may have been on its
// way for long.
func (c *connection) leased(lease *berthv1.Lease) {
	if c.Watchdog == nil {
		return
	}
	if lease.GetSeconds() <= 0 {
		c.Watchdog.Release()
		return
	}
	if at, known := c.samples.at(lease.GetSequence()); known {
		c.Watchdog.Lease(at.Add(time.Duration(lease.GetSeconds() * float64(time.Second))))
	}
}

// armed is the time without a lease after which the node is reset; 0: it is not.
func (s *Session) armed() time.Duration {
	if s.Watchdog == nil {
		return 0
	}
	return s.Watchdog.Armed()
}
