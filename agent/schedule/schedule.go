// Package schedule is how the agent's work runs side by side and waits. There is one real form; a simulator has its own, in
// which one piece of work runs at any moment and time passes when nothing else can happen.
package schedule

import (
	"context"
	"time"
)

// Scheduler runs work and lets it wait.
type Scheduler interface {
	Now() time.Time
	// Go runs work beside the caller.
	Go(work func())
	// Wait waits until the channel delivers or is closed, the time has passed, or the context ends; that is the error. It
	// reports whether the channel has delivered. A nil channel never does, and no time (0) means: for ever.
	Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (delivered bool, err error)
	// Limit gives a context that ends after a time.
	Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc)
}

// Real is the machine's own time and the runtime's goroutines.
type Real struct{}

// Now implements Scheduler.
func (Real) Now() time.Time { return time.Now() }

// Go implements Scheduler.
func (Real) Go(work func()) { go work() }

// Wait implements Scheduler.
func (Real) Wait(ctx context.Context, until <-chan struct{}, atMost time.Duration) (bool, error) {
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
func (Real) Limit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, after)
}
