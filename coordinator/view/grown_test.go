package view

import (
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// A node that is added is what the other one is without its VMs, whatever that one stands like; the view itself stays as it is.
func TestAddedNodesAreEmptyAndUp(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const gib = units.GiB
	facts := model.NodeFacts{
		Liveness: model.Suspect, LivenessReason: "silent", Inventory: true, Memory: 64 * gib, CPUs: 16, DomainsKnown: true,
		Domains:   []model.Domain{{UUID: "v1", Name: "web1", State: model.DomainRunning, Memory: 8 * gib, VCPUs: 4, Resident: new(8 * gib)}},
		Telemetry: true, TelemetryAt: at.Add(-time.Hour), Available: new(54 * gib), Load1: new(2.0), MemoryPressure: new(40.0),
	}
	v := New(at, 1, Records{
		Nodes: []model.Node{{ID: "n1", Name: "hv1", Labels: []string{"ssd"}, Settings: model.NodeSettings{RAMRatio: new(2.0)}}},
		VMs:   []model.VM{{ID: "v1", Name: "web1", Holder: "n1", Spec: model.VMSpec{Memory: 8 * gib, VCPUs: 4}}},
	}, map[string]model.NodeFacts{"n1": facts})
	like := v.Node("n1")
	for _, c := range []struct{ asked, memory units.Bytes }{{0, 64 * gib}, {512 * gib, 512 * gib}} {
		columns := v.Grown(model.DefaultCluster, like, 2, c.asked)
		if columns.Len() != 3 || columns.IDs[0] != "n1" || Added("n1") || !Added(columns.IDs[1]) || columns.IDs[1] >= columns.IDs[2] {
			t.Fatalf("the nodes are %v", columns.IDs)
		}
		for at := 1; at < 3; at++ {
			if columns.Count.At(at) != 0 || columns.Used.At(at) != 0 || columns.Promised[at] != 2*c.memory {
				t.Errorf("node %d has %d VMs, promises %v of %v", at, columns.Count.At(at), columns.Used.At(at), columns.Promised[at])
			}
			if free := columns.Free.At(at); free != c.memory-2*gib { // the host itself uses 2 GiB
				t.Errorf("of node %d %v are free", at, free)
			}
			if columns.Standing[at] != Stands {
				t.Errorf("node %d stands %v", at, columns.Standing[at])
			}
		}
	}
	if v.Nodes.Len() != 1 || like.Facts.Liveness != model.Suspect || len(like.Facts.Domains) != 1 || len(like.Allocations) != 1 {
		t.Errorf("the view is another one: %+v", like)
	}
}
