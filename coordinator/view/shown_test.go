package view

import (
	"testing"

	"berth/coordinator/model"
	"berth/shared/units"
)

func TestOfHowManyVMsNobodyTells(t *testing.T) {
	vms := []model.VM{
		held("a", "n1", units.GiB, 1, noon), held("b", "n1", units.GiB, 1, noon), held("c", "n2", units.GiB, 1, noon),
		{ID: "stopped", Name: "stopped"},
	}
	silent, early := healthy(ran("a", units.GiB, 1)), healthy()
	silent.Liveness, early.DomainsKnown = model.Unreachable, false
	for name, tc := range map[string]struct {
		first, second   model.NodeFacts
		running, untold int
	}{
		"all tell, one does not run":         {healthy(ran("a", units.GiB, 1)), healthy(ran("c", units.GiB, 1)), 2, 0},
		"one has not told its domains":       {early, healthy(ran("c", units.GiB, 1)), 1, 2},
		"one is silent":                      {silent, healthy(ran("c", units.GiB, 1)), 1, 2},
		"another tells of a silent one's VM": {silent, healthy(ran("a", units.GiB, 1), ran("c", units.GiB, 1)), 2, 1},
		"nobody tells":                       {silent, early, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			records := Records{Nodes: []model.Node{{ID: "n1", Name: "node1"}, {ID: "n2", Name: "node2"}}, VMs: vms}
			running, untold := New(noon, 7, records, map[string]model.NodeFacts{"n1": tc.first, "n2": tc.second}).Running()
			if running != tc.running || untold != tc.untold {
				t.Errorf("%d run and nobody tells of %d, want %d and %d", running, untold, tc.running, tc.untold)
			}
		})
	}
}
