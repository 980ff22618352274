package stage

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// Began is the time of day at which every run begins.
var Began = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Clock is virtual time: what is due next happens next, and nothing else runs meanwhile.
type Clock struct {
	Now    time.Time
	Random *rand.Rand
	Ran    uint64 // of events that happened
	due    events
	count  uint64 // of events that were put
}

type event struct {
	at   time.Time
	turn uint64 // among those of one moment
	do   func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	if e[i].at.Equal(e[k].at) {
		return e[i].turn < e[k].turn
	}
	return e[i].at.Before(e[k].at)
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return last
}

func newClock(seed uint64) Clock {
	return Clock{Now: Began, Random: rand.New(rand.NewPCG(seed, 0x5ea5ed))}
}

// After lets something happen when a time has passed.
func (c *Clock) After(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.due, event{at: c.Now.Add(d), turn: c.count, do: do})
}

// Play lets everything happen that is due until then.
func (c *Clock) Play(until time.Time) {
	for len(c.due) > 0 && !c.due[0].at.After(until) {
		e := heap.Pop(&c.due).(event)
		c.Now = e.at
		c.Ran++
		e.do()
	}
	c.Now = until
}

// Passed is how long the run has lasted.
func (c *Clock) Passed() time.Duration { return c.Now.Sub(Began) }

// Chance is true in so many of a thousand cases.
func (c *Clock) Chance(perMille int) bool { return perMille > 0 && c.Random.IntN(1000) < perMille }

// Between draws a time.
func (c *Clock) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(c.Random.Int64N(int64(most-least)))
}
