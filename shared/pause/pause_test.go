package pause_test

import (
	"context"
	"testing"
	"time"

	"berth/shared/pause"
)

func TestForEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if pause.For(ctx, time.Hour) {
		t.Fatal("a pause went on though its context had ended")
	}
}

func TestForWaits(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	if length := 5 * time.Millisecond; !pause.For(t.Context(), length) || time.Since(begun) < length {
		t.Fatal("a pause ended before its time")
	}
}
