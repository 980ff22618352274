package lead

import (
	"context"
	"runtime/debug"
	"time"
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
func (l *Leader) survived(ctx context.Context, what string, do func(context.Context)) (well bool) {
	defer func() {
		if cause := recover(); cause != nil {
			l.Logger.Error("a part of the leader's work has panicked, and is begun anew: this is a fault of Berth, please report it",
				"part", what, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	do(ctx)
	return true
}
