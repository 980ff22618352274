//go:build !race

package consensus

import (
	"strings"
	"testing"
)

// The checks find what is planted, each by the one that is meant for it; another may have seen it first, in another schedule.
func TestSchedulesFindPlantedFaults(t *testing.T) {
	dir := t.TempDir()
	for planted, says := range map[tooth]string{
		lyingDisk:        "",
		forgottenVote:    "",
		unprovenRead:     "linearizable",
		noBarrier:        "linearizable",
		blindAcknowledge: "",
		skippedEntry:     "state",
		ownApply:         "state",
		lostKey:          "",
	} {
		if planted == forgottenVote && (testing.Short() || raceDetected) {
			continue // it takes hundreds of schedules to find this one
		}
		t.Run(string(planted), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 1500; seed++ {
				seen := schedule(t, seed, planted, dir)
				if text := strings.Join(seen.wrong, "; "); text != "" && strings.Contains(text, says) {
					t.Logf("found by seed %d: %.200s", seed, text)
					return
				}
			}
			t.Error("not found in 1500 schedules")
		})
	}
}
