package state

import "time"

// ClockLevel is the feature level from which one wrong stamp does not move the clock of the state.
const ClockLevel = 3

const (
	// clockLeap is how far a stamp may be from the clock and move it at once. Leaders' clocks differ by less where they are kept.
	clockLeap = 5 * time.Minute
	// clockProof is how many stamps in a row it takes to move it further. Nothing that the clock is for is urgent: what is dropped
	// by age is dropped a hundred commands later.
	clockProof = 100
)

// clock is the time by which old records are dropped, made of the times that leaders have stamped on commands. Were it simply the
// latest of them, a leader whose clock has once been years ahead would make all that is ever recorded old at once.
type clock struct {
	Clock time.Time `json:"clock"`
	// Leap is the latest of the stamps in a row that are all on one side of Clock, and farther from it than clockLeap; Leaps is
	// how many these are.
	Leap  time.Time `json:"leap,omitzero"`
	Leaps int       `json:"leaps,omitempty"`
}

// steadied is the clock after a command was stamped.
func (c clock) steadied(at time.Time) clock {
	if c.Clock.IsZero() {
		return clock{Clock: at}
	}
	if !apart(at, c.Clock) {
		return clock{Clock: later(c.Clock, at)}
	}
	goesOn := c.Leaps > 0 && at.After(c.Leap.Add(-clockLeap)) && c.Leap.After(c.Clock) == at.After(c.Clock)
	if !goesOn {
		c.Leap, c.Leaps = at, 0
	}
	if c.Leap, c.Leaps = later(c.Leap, at), c.Leaps+1; c.Leaps == clockProof {
		return clock{Clock: c.Leap}
	}
	return c
}

func apart(a, b time.Time) bool { return a.Sub(b).Abs() > clockLeap }
