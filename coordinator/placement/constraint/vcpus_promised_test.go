package constraint

import (
	"testing"

	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// vCPUs may use up the limit, and no more; a VM that is started again after a failure shares CPUs rather than stay down.
func TestVCPUsArePromisedButToARestart(t *testing.T) {
	columns := &view.Columns{Figures: view.Figures{
		IDs: []string{"n1"}, Names: []string{"node1"}, Known: []view.Known{view.KnowsInventory}, InventoryAt: view.ColumnOf[int64](1),
		VCPULimit: []float64{8}, VCPUs: view.ColumnOf(6),
	}}
	for _, c := range []struct {
		vcpus           int
		restart, passes bool
	}{{2, false, true}, {3, false, false}, {3, true, true}} {
		in := &rule.Input{Columns: columns, Now: 2, VCPUs: c.vcpus, Restart: c.restart}
		if verdict := vcpusPromised.Check(in, 0); verdict.Passed != c.passes {
			t.Errorf("%d vCPUs, restart %t: %+v", c.vcpus, c.restart, verdict)
		}
	}
	columns.Known[0] = 0
	if vcpusPromised.Check(&rule.Input{Columns: columns, Now: 2, VCPUs: 1}, 0).Passed {
		t.Error("a node whose CPUs are not known takes vCPUs")
	}
}
