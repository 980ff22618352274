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
		asleep   time.Duration // that the host had been then
	}
	next int
}

func (s *sent) note(sequence uint64, at time.Time, asleep time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[s.next].sequence, s.ring[s.next].at, s.ring[s.next].asleep = sequence, at, asleep
	s.next = (s.next + 1) % len(s.ring)
}

// at is when a sample was sent, by a clock that stands while the host is asleep, and for how long the host had been until then;
// false if that is not known any more, or it was never sent.
func (s *sent) at(sequence uint64) (at time.Time, asleep time.Duration, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ring {
		if one := &s.ring[i]; one.sequence == sequence && sequence > 0 {
			return one.at, one.asleep, true
		}
	}
	return time.Time{}, 0, false
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
	if at, asleep, known := c.samples.at(lease.GetSequence()); known {
		at = at.Add(asleep - c.Watchdog.Asleep()) // the leader's clock has not stood
		c.Watchdog.Lease(at.Add(time.Duration(lease.GetSeconds() * float64(time.Second))))
	}
}

// asleep is for how long the host has been asleep, as far as that matters.
func (s *Session) asleep() time.Duration {
	if s.Watchdog == nil {
		return 0
	}
	return s.Watchdog.Asleep()
}

// armed is the time without a lease after which the node is reset; 0: it is not.
func (s *Session) armed() time.Duration {
	if s.Watchdog == nil {
		return 0
	}
	return s.Watchdog.Armed()
}
