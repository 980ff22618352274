package faults

import (
	"container/heap"
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// began is the time of day at which every run begins.
var began = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// clockwork is virtual time: what is due next happens next, and nothing else runs meanwhile.
type clockwork struct {
	now     time.Time
	due     events
	count   uint64 // of events that were put
	ran     uint64 // of events that happened
	random  *rand.Rand
	current *strand
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

func newClockwork(seed uint64) clockwork {
	return clockwork{now: began, random: rand.New(rand.NewPCG(seed, 0x5ea5ed))}
}

// after lets something happen when a time has passed.
func (c *clockwork) after(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.due, event{at: c.now.Add(d), turn: c.count, do: do})
}

// next lets the next thing happen. It reports false when nothing is due until the end.
func (c *clockwork) next(end time.Time) bool {
	if len(c.due) == 0 || c.due[0].at.After(end) {
		return false
	}
	e := heap.Pop(&c.due).(event)
	c.now = e.at
	c.ran++
	e.do()
	return true
}

// chance is true in so many of a thousand cases.
func (c *clockwork) chance(perMille int) bool { return perMille > 0 && c.random.IntN(1000) < perMille }

// between draws a time.
func (c *clockwork) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(c.random.Int64N(int64(most-least)))
}

// strand is work that waits now and then. It runs only while the clockwork lets it.
type strand struct {
	life  *life
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	turn  uint64 // of waiting: an alarm for an earlier one is void
	until <-chan struct{}
	got   bool // what it waits for has come
	over  bool
}

// scheduler is how an agent's life runs and waits; package agent/jobs has the real one.
type scheduler struct {
	world *World
	life  *life
}

// Now implements schedule.Scheduler.
func (s scheduler) Now() time.Time { return s.world.now }

// Go implements schedule.Scheduler.
func (s scheduler) Go(work func()) {
	one := &strand{life: s.life}
	one.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		one.yield = yield
		work()
	})
	s.life.strands = append(s.life.strands, one)
	s.world.after(0, func() { s.world.let(one, one.turn) })
}

// let runs a strand until it waits again or ends. A strand of a host that stands still runs when the host does.
func (w *World) let(one *strand, turn uint64) {
	if one.over || one.turn != turn {
		return
	}
	if host := one.life.host; host.frozen && !one.life.dead {
		host.later = append(host.later, func() { w.let(one, turn) })
		return
	}
	w.resume(one)
	if !one.life.dead {
		w.stir(one.life)
		w.deliverResults(one.life)
	}
}

func (w *World) resume(one *strand) {
	one.turn++
	before := w.current
	w.current = one
	_, more := one.next()
	w.current = before
	one.over = !more
}

// stir looks at the channels that strands wait for: something has happened in their life.
func (w *World) stir(l *life) {
	kept := l.strands[:0]
	for _, one := range l.strands {
		if one.over {
			continue
		}
		kept = append(kept, one)
		if one.until == nil || one.got {
			continue
		}
		select {
		case <-one.until:
			one.got = true
			turn := one.turn
			w.after(0, func() { w.let(one, turn) })
		default:
		}
	}
	clear(l.strands[len(kept):])
	l.strands = kept
}

// Wait implements schedule.Scheduler.
func (s scheduler) Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (bool, error) {
	w, one := s.world, s.world.current
	end := time.Time{}
	if atMost > 0 {
		end = w.now.Add(atMost)
	}
	limit, limited := ctx.Deadline()
	if until != nil {
		select {
		case <-until:
			return true, nil
		default:
		}
	}
	one.until, one.got = until, false
	defer func() { one.until = nil }()
	for {
		switch {
		case one.got:
			return true, nil
		case s.life.dead:
			return false, context.Canceled
		case ctx.Err() != nil:
			return false, ctx.Err()
		case !end.IsZero() && !w.now.Before(end):
			return false, nil
		}
		turn := one.turn
		alarm := func() { w.let(one, turn) }
		if !end.IsZero() {
			w.after(end.Sub(w.now), alarm)
		}
		if limited && (end.IsZero() || limit.Before(end)) {
			w.after(limit.Sub(w.now), alarm)
		}
		one.yield(struct{}{})
	}
}

// Limit implements schedule.Scheduler.
func (s scheduler) Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return deadline{Context: ctx, world: s.world, at: s.world.now.Add(after)}, func() {}
}

// deadline is a context that ends in virtual time.
type deadline struct {
	context.Context
	world *World
	at    time.Time
}

// Deadline implements context.Context.
func (d deadline) Deadline() (time.Time, bool) {
	if outer, limited := d.Context.Deadline(); limited && outer.Before(d.at) {
		return outer, true
	}
	return d.at, true
}

// Err implements context.Context.
func (d deadline) Err() error {
	if !d.world.now.Before(d.at) {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
