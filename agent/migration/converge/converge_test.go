package converge

import (
	"strings"
	"testing"
	"time"
)

func TestGivesUpAtTheDeadline(t *testing.T) {
	var h History
	if giveUp, _ := h.Judge(Progress{Elapsed: 59 * time.Second, Remaining: 10}, time.Minute); giveUp {
		t.Error("gave up before the deadline")
	}
	if giveUp, why := h.Judge(Progress{Elapsed: time.Minute, Remaining: 5}, time.Minute); !giveUp || !strings.Contains(why, "1m0s") {
		t.Errorf("gave up %t: %q", giveUp, why)
	}
}

func TestGivesUpWhenNothingMoves(t *testing.T) {
	var h History
	for second := range 200 {
		giveUp, _ := h.Judge(Progress{Elapsed: time.Duration(second) * time.Second, Remaining: max(100-int64(second), 60)}, 0)
		// The smallest remainder, 60, is reached at second 40.
		if want := second >= 40+150; giveUp != want {
			t.Fatalf("second %d: gave up %t, want %t", second, giveUp, want)
		}
	}
}

func TestSlowProgressIsProgress(t *testing.T) {
	var h History
	for minute := range 60 {
		if giveUp, why := h.Judge(Progress{Elapsed: time.Duration(minute) * time.Minute, Remaining: 1000 - int64(minute)}, 0); giveUp {
			t.Fatalf("minute %d: %s", minute, why)
		}
	}
}
