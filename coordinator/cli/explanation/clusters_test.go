package explanation_test

import (
	"bytes"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// In brief the clusters that nobody came to are counted; in full each stands there.
func TestClustersOfADecision(t *testing.T) {
	clusters := []*berthv1.DecisionCluster{
		{
			Cluster: "east-1", Pod: "a", Used: 0.125, PodVms: 3, TotalVms: 4, Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED,
			Reason: "of 2 nodes, storage refuses 2",
		},
		{
			Cluster: "east-2", Pod: "a", Used: 0.5, AccountVms: 1, PodVms: 3, TotalVms: 4, Weight: 0.25,
			Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED,
		},
		{Cluster: "west-1", Used: 0.2, AccountVms: 3, TotalVms: 4, Weight: 0.75},
		{Cluster: "west-2", Used: 0.9, TotalVms: 4, LeftOut: "with the VM, 90 % of its CPU would be used, more than its threshold of 85 %"},
	}
	var out bytes.Buffer
	for _, show := range []explanation.Detail{{}, {Full: true}} {
		p := &term.Page{Out: &out}
		explanation.Clusters(p, clusters, show)
	}
	explanation.Clusters(&term.Page{Out: &out}, nil, explanation.Detail{Full: true})
	clitest.Golden(t, "decision-clusters.golden", out.String())
}
