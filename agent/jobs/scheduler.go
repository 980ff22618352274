package jobs

import (
	"context"
	"time"
)

// Scheduler runs work side by side and lets it wait. There is one real form. A simulator has its own, in which one piece of work
// runs at any moment, and time passes when nothing else can happen.
type Scheduler interface {
	Now() time.Time
	// Go runs work while the caller goes on.
	Go(work func())
	// Wait waits until the channel delivers or is closed, the time has passed, or the context ends, which is the only error. It
	// reports whether the channel has delivered. A nil channel never delivers, and a time of 0 means no limit.
	Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (delivered bool, err error)
	// Limit returns a context that ends after a time.
	Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc)
}

// realTime is the machine's own time and the runtime's goroutines.
type realTime struct{}

// Now implements Scheduler.
func (realTime) Now() time.Time { return time.Now() }

// Go implements Scheduler.
func (realTime) Go(work func()) { go work() }

// Wait implements Scheduler.
func (realTime) Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (bool, error) {
	var passed <-chan time.Time
	if atMost > 0 {
		timer := time.NewTimer(atMost)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-until:
		return true, nil
	case <-passed:
		return false, nil
	}
}

// Limit implements Scheduler.
func (realTime) Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, after)
}
