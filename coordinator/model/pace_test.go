package model

import (
	"testing"
	"time"
)

// The larger the fleet the slower it reports, so that the leader gets a hundred samples a second, and silence is borne for as
// long as it takes to miss three. A small fleet is as fast as ever.
func TestTheFleetSetsThePace(t *testing.T) {
	for nodes, want := range map[int][4]time.Duration{
		0:      {TelemetryInterval, InventoryInterval, SuspectAfter, UnreachableAfter},
		200:    {2 * time.Second, 30 * time.Second, 6 * time.Second, 30 * time.Second},
		400:    {4 * time.Second, 30 * time.Second, 12 * time.Second, 30 * time.Second},
		1000:   {10 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second},
		1200:   {12 * time.Second, 36 * time.Second, 36 * time.Second, 36 * time.Second},
		10_000: {15 * time.Second, 45 * time.Second, 45 * time.Second, 45 * time.Second},
	} {
		pace := PaceOf(nodes)
		got := [4]time.Duration{pace.Telemetry(), pace.Inventory(), pace.Suspect(), pace.Unreachable()}
		if got != want {
			t.Errorf("%d nodes: %v, want %v", nodes, got, want)
		}
		if nodes >= 200 && nodes <= 1500 && float64(nodes)/pace.Telemetry().Seconds() > samplesASecond {
			t.Errorf("%d nodes send %g samples a second", nodes, float64(nodes)/pace.Telemetry().Seconds())
		}
	}
}
