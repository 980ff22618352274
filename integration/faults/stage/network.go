package stage

import "time"

// How much later than others a message of a wild network may come, and how long after it the same one may come again.
const (
	lateMost  = 30 * time.Second
	againMost = 20 * time.Second
)

// IsWild tells whether messages may be late, lost, double and out of order.
func (s *Stage) IsWild() bool { return s.Mix.Wild || s.Now.Before(s.calm) }

// Carry takes one message over the network. In order and once, or, in a wild one, late, lost, double and in any order. Last is when the one
// before it arrives.
func (s *Stage) Carry(last *time.Time, deliver func()) {
	delay := s.Between(100*time.Microsecond, s.Mix.Delay)
	if !s.Mix.Wild {
		at := s.Now.Add(delay)
		if at.Before(*last) {
			at = *last
		}
		*last = at
		s.After(at.Sub(s.Now), deliver)
		return
	}
	if s.Chance(s.Mix.Lost) {
		return
	}
	if s.Chance(50) {
		delay += s.Between(0, lateMost)
	}
	s.After(delay, deliver)
	if s.Chance(s.Mix.Doubled) {
		s.After(delay+s.Between(0, againMost), deliver)
	}
}
