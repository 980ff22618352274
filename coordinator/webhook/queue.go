package webhook

import (
	"math/rand/v2"
	"slices"
	"time"

	"berth/coordinator/history"
)

// When tries are made, and when they end.
const (
	window     = 1024 // deliveries that are read and not all taken
	firstWait  = time.Second
	longestOne = 5 * time.Minute // between two tries of one delivery
	longestAll = time.Minute     // between two tries of anything, while the receiver takes nothing
	// stubborn is after how many tries a delivery is given up whose receiver takes others meanwhile.
	stubborn = 8
	// outage is how many tries in a row have failed when it is the receiver that is out of order, and not one delivery that it refuses.
	outage = 3
	// patience is how long a delivery is tried while its receiver takes nothing at all.
	patience = 24 * time.Hour
	// retries is how often a delivery is tried that somebody wants tried again.
	retries = 3
)

// delivery is one that is not taken yet.
type delivery struct {
	told
	again bool // somebody wants it tried again: it is in no order

	flying   bool
	over     bool // taken, or given up
	tries    int
	refusals int       // tries of which it was not taken while there was no outage
	begun    time.Time // the first try
	tried    time.Time
	next     time.Time // not before
	takenFor uint64    // how many others had been taken at the first try
}

// queue says what is sent next to one receiver. It has no clock and no network.
type queue struct {
	read  history.Place // all up to here was taken in
	open  []*delivery   // in the order of the log, from the first that is not over
	again []*delivery

	patience time.Duration

	flying int
	taken  uint64
	failed int       // tries in a row that were not taken
	next   time.Time // nothing before that
	since  time.Time // the receiver takes nothing; zero: it does
	reason string
}

// after is up to where all is over.
func (q *queue) after() history.Place {
	if len(q.open) == 0 {
		return q.read
	}
	return q.open[0].Previous()
}

// room is how many more deliveries may be read. It is none until half of the window is free, so that blocks are not read for one of them.
func (q *queue) room() int {
	if len(q.open) > window/2 {
		return 0
	}
	return window - len(q.open)
}

func (q *queue) add(t told) { q.open = append(q.open, &delivery{told: t}) }

// waiting is how many deliveries are not over.
func (q *queue) waiting() (n int) {
	for _, d := range q.open {
		if !d.over {
			n++
		}
	}
	return n + len(q.again)
}

// pick is what is to be sent now; nil: nothing before the time that is told, or before an answer if that is zero. Of each thing the first
// one goes alone. Among those that may go, the one that was not tried for longest does: so one that is refused holds up nobody else.
func (q *queue) pick(now time.Time) (best *delivery, at time.Time) {
	if q.flying >= inFlight || q.failed > 0 && q.flying > 0 {
		return nil, time.Time{}
	}
	if now.Before(q.next) {
		return nil, q.next
	}
	consider := func(d *delivery) {
		switch {
		case d.flying:
		case now.Before(d.next) && q.failed < outage: // during an outage one wait is enough
			if at.IsZero() || d.next.Before(at) {
				at = d.next
			}
		case best == nil || d.tried.Before(best.tried):
			best = d
		}
	}
	seen := make(map[string]bool)
	for _, d := range q.open {
		if !d.over && !seen[d.subject] {
			seen[d.subject] = true
			consider(d)
		}
	}
	for _, d := range q.again {
		consider(d)
	}
	if best != nil {
		at = time.Time{}
	}
	return best, at
}

// begin notes that a delivery is on its way.
func (q *queue) begin(d *delivery, now time.Time) {
	if d.tries == 0 {
		d.begun, d.takenFor = now, q.taken
	}
	d.flying, d.tried = true, now
	d.tries++
	q.flying++
}

// landed notes that a delivery was taken. After an outage nothing waits any longer for what was tried during it.
func (q *queue) landed(d *delivery) {
	q.taken++
	if q.failed >= outage {
		for _, other := range q.open {
			other.next = time.Time{}
		}
	}
	q.failed, q.next, q.since, q.reason = 0, time.Time{}, time.Time{}, ""
	q.end(d)
}

// refused notes that a delivery was not taken, and tells whether it is given up.
func (q *queue) refused(d *delivery, reason string, now time.Time, jitter *rand.Rand) (dead bool) {
	if q.since.IsZero() {
		q.since = now
	}
	q.failed++
	if q.failed < outage {
		d.refusals++
	}
	q.reason = reason
	q.next = now.Add(backOff(q.failed, longestAll, jitter))
	switch {
	case d.again:
		dead = d.tries >= retries
	case d.refusals >= stubborn && q.taken > d.takenFor:
		dead = true
	default:
		dead = now.Sub(d.begun) >= q.patience
	}
	if dead {
		q.end(d)
		return true
	}
	d.flying = false
	q.flying--
	d.next = now.Add(backOff(max(1, d.refusals), longestOne, jitter))
	return false
}

// end forgets a delivery that is over.
func (q *queue) end(d *delivery) {
	q.flying--
	d.flying, d.over, d.data = false, true, nil
	q.again = slices.DeleteFunc(q.again, func(other *delivery) bool { return other == d })
	done := 0
	for done < len(q.open) && q.open[done].over {
		done++
	}
	q.open = slices.Delete(q.open, 0, done)
}

// backOff is how long to wait after so many failures: twice as long each time, and less by a random part of up to half.
func backOff(failures int, longest time.Duration, jitter *rand.Rand) time.Duration {
	wait := longest
	if doublings := failures - 1; doublings < 20 {
		wait = min(longest, firstWait<<doublings)
	}
	return wait - time.Duration(jitter.Int64N(int64(wait)/2+1))
}
