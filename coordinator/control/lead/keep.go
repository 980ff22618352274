package lead

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// What has panicked is begun anew after a pause, and each time in a row after a longer one.
const (
	leastKeepPause = 5 * time.Second
	mostKeepPause  = time.Minute
)

// Keep does something that ends by itself, or with the context, and begins it anew when it panics. What one node says would otherwise end
// each coordinator in turn, because it says the same to the next leader; so only what trips over it stands still, and is told. What
// applies the log is not kept like that: after a panic there members may differ.
func (l *Leader) Keep(ctx context.Context, what string, do func(context.Context)) {
	for pause := leastKeepPause; !l.survived(ctx, what, do); pause = min(2*pause, mostKeepPause) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// survived tells that something has come to its end without a panic.
func (l *Leader) survived(ctx context.Context, what string, do func(context.Context)) bool {
	return !errors.Is(Survive(l.Logger, what, func() error { do(ctx); return nil }), ErrPanicked)
}

// ErrPanicked is what a panic is made of.
var ErrPanicked = errors.New("a fault of Berth, please report it")

// Survive does something, and makes an error of a panic. The log has where it was.
func Survive(log hclog.Logger, what string, do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			log.Error("a part of a coordinator's work has panicked, and the rest goes on: this is a fault of Berth, please report it",
				"part", what, "panic", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s has panicked: %w", what, ErrPanicked)
		}
	}()
	return do()
}

// Beside does something in a goroutine of its own, which work waits for. A panic ends neither the coordinator nor what is done beside it.
func (l *Leader) Beside(work *sync.WaitGroup, what string, do func()) {
	work.Go(func() { _ = Survive(l.Logger, what, func() error { do(); return nil }) })
}

// Rest waits after a panic, so that what is found again at once is not told at once. It ends with the leadership.
func (l *Leader) Rest() {
	ctx, leading := l.Leadership()
	if !leading {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(mostKeepPause):
	}
}
