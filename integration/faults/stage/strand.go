package stage

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

// Life is what runs on a scheduler: a process that may end, on a machine that may stand still.
type Life interface {
	// IsDead tells that it has ended.
	IsDead() bool
	// Holds keeps what is due until the machine goes on, if it stands still; else it reports false.
	Holds(due func()) bool
	// Ran is told after some work of it has run.
	Ran()
}

// Scheduler is how an agent's life runs and waits; package agent/jobs has the real one.
type Scheduler struct {
	stage   *Stage
	life    Life
	strands []*strand
}

// NewScheduler is the scheduler of a life.
func (s *Stage) NewScheduler(life Life) *Scheduler { return &Scheduler{stage: s, life: life} }

// Now implements jobs.Scheduler.
func (s *Scheduler) Now() time.Time { return s.stage.Now }

// Go implements jobs.Scheduler.
func (s *Scheduler) Go(work func()) {
	one := &strand{}
	one.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		one.yield = yield
		work()
	})
	s.strands = append(s.strands, one)
	s.stage.After(0, func() { s.let(one, one.turn) })
}

// let runs a strand until it waits again or ends. A strand of a host that stands still runs when the host does.
func (s *Scheduler) let(one *strand, turn uint64) {
	if one.over || one.turn != turn {
		return
	}
	if s.life.Holds(func() { s.let(one, turn) }) {
		return
	}
	s.resume(one)
	if !s.life.IsDead() {
		s.Stir()
		s.life.Ran()
	}
}

func (s *Scheduler) resume(one *strand) {
	one.turn++
	before := s.stage.current
	s.stage.current = one
	_, more := one.next()
	s.stage.current = before
	one.over = !more
}

// Stir looks at the channels that strands wait for: something has happened in their life.
func (s *Scheduler) Stir() {
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
			s.stage.After(0, func() { s.let(one, turn) })
		default:
		}
	}
	clear(s.strands[len(kept):])
	s.strands = kept
}

// Unwind lets the work of a dead life return. It finds nothing that it could still change.
func (s *Scheduler) Unwind() {
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
func (s *Scheduler) Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (bool, error) {
	w, one := s.stage, s.stage.current
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
		case s.life.IsDead():
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
func (s *Scheduler) Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return deadline{Context: ctx, stage: s.stage, at: s.stage.Now.Add(after)}, func() {}
}

// deadline is a context that ends in virtual time.
type deadline struct {
	context.Context
	stage *Stage
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
	if !d.stage.Now.Before(d.at) {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
