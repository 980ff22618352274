package state

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/placement"
)

// FAULTS.md, W22. A leader whose clock is in 2099 lets nothing grow old at once, and nothing for ever once the next one leads.
func TestALeaderIn2099LetsNothingGrowOld(t *testing.T) {
	for name, c := range map[string]struct {
		level uint32
		left  int
		clock time.Duration
	}{
		"all members bound it":          {ClockLevel, 11, 10 * MaxClockStep},
		"one of them is of release 0.6": {ClockLevel - 1, 0, 73 * 8766 * time.Hour},
	} {
		m := newMember(t)
		if c.level > 1 {
			raise := RaiseLevel(c.level)
			raise.At = noon
			m.stored(raise)
		}
		m.stored(Command{Key: "first", At: noon, Decisions: []placement.Decision{decision("d0")}})
		for i := range 10 {
			m.stored(Command{Key: fmt.Sprint("2099-", i), At: noon.Add(73 * 8766 * time.Hour)})
		}
		for i := range 10 {
			one := decision(fmt.Sprint("d", i+1))
			m.stored(Command{Key: fmt.Sprint("next-", i), At: noon.Add(time.Hour), Decisions: []placement.Decision{one}})
		}
		if got := m.store.now.Load().applied.Clock.Sub(noon).Round(time.Minute); got != max(c.clock, 0) && got != time.Hour {
			t.Errorf("%s: the time is %s ahead", name, got)
		}
		if left := len(m.store.Snapshot().Decisions(0)); left != c.left {
			t.Errorf("%s: %d decisions are left, want %d", name, left, c.left)
		}
	}
}
