package explanation_test

import (
	"bytes"
	"strings"
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

// Of several weighers the one that parts the best nodes most stands first, and those that part them alike as they come.
func TestRanksStandInTheOrderInWhichTheyDecide(t *testing.T) {
	row := func(weigher string, factor, first, second float64) *berthv1.RankRow {
		return &berthv1.RankRow{Weigher: weigher, Factor: factor, Cells: []*berthv1.RankCell{{Rank: first}, {Rank: second}}}
	}
	decision := clitest.CannedDecision()
	decision.RankNodes = []string{"node2", "node1"}
	decision.Ranks = []*berthv1.RankRow{row("small", 1, 2, 1), row("none", 9, 1, 1), row("large", 2, 1, 4), row("alike", 1, 1, 2)}
	f := clitest.Steady()
	f.OnGetDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: decision}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("decision", "show", "last", "--ranks")
	at := -1
	for _, weigher := range []string{"large", "small", "alike", "none"} {
		next := strings.Index(said.Out, "  "+weigher+" ")
		if next <= at {
			t.Fatalf("%s stands at %d, after %d:\n%s%s", weigher, next, at, said.Out, said.ErrOut)
		}
		at = next
	}
}
