package jobs

import (
	"strings"
	"testing"
	"time"
)

func TestGivesUpAtTheDeadline(t *testing.T) {
	var h history
	if giveUp, _ := h.judge(progress{elapsed: 59 * time.Second, remaining: 10}, time.Minute); giveUp {
		t.Error("gave up before the deadline")
	}
	if giveUp, why := h.judge(progress{elapsed: time.Minute, remaining: 5}, time.Minute); !giveUp || !strings.Contains(why, "1m0s") {
		t.Errorf("gave up %t: %q", giveUp, why)
	}
}

func TestGivesUpWhenNothingMoves(t *testing.T) {
	var h history
	for second := range 200 {
		giveUp, _ := h.judge(progress{elapsed: time.Duration(second) * time.Second, remaining: max(100-int64(second), 60)}, 0)
		// The smallest remainder, 60, is reached at second 40.
		if want := second >= 40+150; giveUp != want {
			t.Fatalf("second %d: gave up %t, want %t", second, giveUp, want)
		}
	}
}

func TestSlowProgressIsProgress(t *testing.T) {
	var h history
	for minute := range 60 {
		if giveUp, why := h.judge(progress{elapsed: time.Duration(minute) * time.Minute, remaining: 1000 - int64(minute)}, 0); giveUp {
			t.Fatalf("minute %d: %s", minute, why)
		}
	}
}
