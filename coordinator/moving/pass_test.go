package moving

import (
	"testing"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/view"
)

// Which of several VMs is the least busy one changes all the time. An operator who is about to apply a proposal finds it there.
func TestAProposalStaysWhileAnotherOneWouldDoTheSame(t *testing.T) {
	facts := map[string]model.NodeFacts{}
	records := view.Records{Clusters: []model.Resource{model.DefaultClusterRecord()}}
	for _, id := range []string{"n1", "n2", "n3"} {
		records.Nodes = append(records.Nodes, model.Node{ID: id, Name: id, Cluster: model.DefaultCluster})
		facts[id] = model.NodeFacts{Liveness: model.Up}
	}
	fleet := &balance.Fleet{
		Cluster: model.DefaultCluster, View: view.New(time.Unix(0, 0), 1, records, facts),
		VMs: []balance.VM{
			{ID: "a", Migration: model.MigrateAutomatic},
			{ID: "b", Migration: model.MigrateAutomatic},
			{ID: "c", Migration: model.MigrateAutomatic},
			{ID: "pinned", Migration: model.MigrateNever},
		},
	}
	plan := func(vm, source, target string, predicted float64) *model.Plan {
		return &model.Plan{
			Kind: model.PlanBalance, Moves: []model.Move{{VM: vm, Source: source, Target: target}}, Before: 2, Predicted: predicted,
		}
	}
	grouped := plan("b", "n1", "n2", 1)
	grouped.Group = "apart"
	for _, test := range []struct {
		why        string
		old, found *model.Plan
		good       bool
	}{
		{"the same", plan("a", "n1", "n2", 1), plan("a", "n1", "n2", 1), true},
		{"another target, drawn among equals", plan("a", "n1", "n2", 1), plan("a", "n1", "n3", 1), true},
		{"another VM of the same node", plan("a", "n1", "n2", 1), plan("b", "n1", "n3", 1+1e-15), true},
		{"another VM, whose move does more", plan("a", "n1", "n2", 1), plan("b", "n1", "n3", 0.5), false},
		{"a VM of another node", plan("a", "n1", "n3", 1), plan("c", "n2", "n3", 1), false},
		{"for another group", plan("a", "n1", "n2", 1), grouped, false},
		{"a VM that may no longer move", plan("pinned", "n1", "n2", 1), plan("a", "n1", "n2", 1), false},
		{"a target that is gone", plan("a", "n1", "n9", 1), plan("a", "n1", "n2", 1), false},
	} {
		if good := stillGood(fleet, test.old, test.found); good != test.good {
			t.Errorf("%s: still good is %t", test.why, good)
		}
	}
}
