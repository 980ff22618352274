package cluster

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

// A placement trusts telemetry for as long as the slowest of its nodes takes to miss three samples; a decision keeps that.
func TestColumnsKnowHowOldTelemetryMayBe(t *testing.T) {
	slow := healthy()
	slow.Pace = PaceOf(1000)
	nodes := []Node{{ID: "n1", Name: "n1"}, {ID: "n2", Name: "n2"}}
	for oldest, facts := range map[time.Duration]map[string]NodeFacts{
		SuspectAfter: {"n1": healthy(), "n2": healthy()}, 30 * time.Second: {"n1": healthy(), "n2": slow},
	} {
		columns := NewView(noon, 1, Records{Nodes: nodes}, facts).Columns(DefaultCluster)
		kept := columns.Select([]int{0})
		if columns.OldestTelemetry() != oldest || kept.OldestTelemetry() != oldest {
			t.Errorf("%s, kept %s, want %s", columns.OldestTelemetry(), kept.OldestTelemetry(), oldest)
		}
		if (columns.Oldest == 0) != (oldest == SuspectAfter) {
			t.Errorf("a small fleet's decisions keep %s", columns.Oldest)
		}
	}
}
