// Package pause waits between two tries of something, as long as somebody still wants it.
package pause

import (
	"context"
	"time"
)

// For waits for d, and is false when the context ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
