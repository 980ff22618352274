package faults

import (
	"context"
	"iter"
	"time"
)

// strand is work that waits now and then. It runs only while the clock lets it.
type strand struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	turn  uint64 // of waiting: an alarm for an earlier one is void
	until <-chan struct{}
	got   bool // what it waits for has come
	over  bool
}

// scheduler is how an agent's life runs and waits; package agent/jobs has the real one.
type scheduler struct {
	life    *life
	world   *World
	strands []*strand
}

// Now implements jobs.Scheduler.
func (s *scheduler) Now() time.Time { return s.world.Now }

// Go implements jobs.Scheduler.
func (s *scheduler) Go(work func()) {
	one := &strand{}
	one.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		one.yield = yield
		work()
	})
	s.strands = append(s.strands, one)
	s.world.After(0, func() { s.let(one, one.turn) })
}

// let runs a strand until it waits again or ends. A strand of a host that stands still runs when the host does.
func (s *scheduler) let(one *strand, turn uint64) {
	if one.over || one.turn != turn {
		return
	}
	if host := s.life.host; host.Frozen && !s.life.dead {
		host.Held = append(host.Held, func() { s.let(one, turn) })
		return
	}
	s.resume(one)
	if !s.life.dead {
		s.Stir()
		s.life.deliverResults()
	}
}

func (s *scheduler) resume(one *strand) {
	one.turn++
	before := s.world.current
	s.world.current = one
	_, more := one.next()
	s.world.current = before
	one.over = !more
}

// Stir looks at the channels that strands wait for: something has happened in their life.
func (s *scheduler) Stir() {
	kept := s.strands[:0]
	for _, one := range s.strands {
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
			s.world.After(0, func() { s.let(one, turn) })
		default:
		}
	}
	clear(s.strands[len(kept):])
	s.strands = kept
}

// unwind lets the work of a dead life return. It finds nothing that it could still change.
func (s *scheduler) unwind() {
	for i := 0; i < len(s.strands); i++ {
		for tries := 0; !s.strands[i].over; tries++ {
			if tries > 1000 {
				panic("work of a dead agent does not end")
			}
			s.resume(s.strands[i])
		}
	}
	s.strands = nil
}

// Wait implements jobs.Scheduler.
func (s *scheduler) Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (bool, error) {
	w, one := s.world, s.world.current
	end := time.Time{}
	if atMost > 0 {
		end = w.Now.Add(atMost)
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
		case !end.IsZero() && !w.Now.Before(end):
			return false, nil
		}
		turn := one.turn
		alarm := func() { s.let(one, turn) }
		if !end.IsZero() {
			w.After(end.Sub(w.Now), alarm)
		}
		if limited && (end.IsZero() || limit.Before(end)) {
			w.After(limit.Sub(w.Now), alarm)
		}
		one.yield(struct{}{})
	}
}

// Limit implements jobs.Scheduler.
func (s *scheduler) Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return deadline{Context: ctx, world: s.world, at: s.world.Now.Add(after)}, func() {}
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
	if !d.world.Now.Before(d.at) {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
