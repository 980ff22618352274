package operation

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// A migration whose source has lost its power is judged when that is back, minutes later, and by then a wall clock may have been set: how
// soon after the VM's start the host was lost is what the leader has seen by its own clock.
func TestALossDuringAMigrationIsSoonByTheLeadersOwnClock(t *testing.T) {
	for name, tc := range map[string]struct {
		came, fell time.Time
		losses     int
	}{
		"it fell a minute after the VM had come":          {came: noon.Add(-10 * time.Minute), fell: noon.Add(-9 * time.Minute), losses: 2},
		"it fell long after the VM had come":              {came: noon.Add(-90 * time.Minute), fell: noon.Add(-9 * time.Minute), losses: 1},
		"an earlier leader saw the VM come":               {fell: noon.Add(-9 * time.Minute), losses: 1},
		"nobody knows when it fell: what is stamped says": {came: noon.Add(-10 * time.Minute), losses: 1},
	} {
		input := judging()
		input.Came, input.Fell, input.Operation.SourceBoot = tc.came, tc.fell, "boot-1"
		input.VM.HA, input.VM.StartedAt = true, noon.Add(-10*time.Minute)
		input.VM.Losses = []model.Loss{{Node: "node9", At: noon.Add(-time.Hour)}}
		absent := func(boot string) Observation { return Observation{State: model.DomainAbsent, Boot: boot} }
		next := judged(t, input, absent("boot-2"), absent("other"))
		if got := next.VM.Losses; len(got) != tc.losses {
			t.Errorf("%s: %+v, want %d", name, got, tc.losses)
		}
	}
}
