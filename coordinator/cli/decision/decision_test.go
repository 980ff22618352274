package decision_test

import (
	"slices"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestReplayThatDiffers(t *testing.T) {
	f := clitest.Steady()
	f.OnReplay = func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error) {
		return &berthv1.ReplayDecisionResponse{
			SchemaVersion: "1", Decision: clitest.CannedDecision(), Differences: []string{"winner: node2, again node1", "round: 1, again 2"},
		}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("decision", "replay", "last")
	if said.Exit != term.Failed {
		t.Errorf("exit %d", said.Exit)
	}
	clitest.Golden(t, "decision-replay-differs.golden", said.Out+clitest.ErrSection(said.ErrOut))
}

// Terms say what is unusual, where anything is.
func TestTermsHaveNotes(t *testing.T) {
	f := clitest.Steady()
	f.OnGetDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		d := clitest.CannedDecision()
		d.GetNodes()[0].GetTerms()[0].Note = "the node's load is not known"
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: d}, nil
	}
	w, _ := clitest.NewSite(t, f)
	if said := w.Run("decision", "show", "last", "--full"); !strings.Contains(said.Out, "CONTRIBUTION  NOTE\n") || !strings.Contains(
		said.Out, "  the node's load is not known\n",
	) {
		t.Errorf("said %s", said.Out)
	}
}

// Where the VM's disk says which node it is, nothing is scored, and no score is shown.
func TestWithoutKeysThereIsNoScore(t *testing.T) {
	f := clitest.Steady()
	f.OnGetDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		d := clitest.CannedDecision()
		d.Round, d.Request.HomeNode, d.Counterfactual, d.Margin = 0, "node2", "", 0
		d.Reason = "node2 has the VM's disk: with local storage it starts there, and no keys are looked at"
		d.Nodes = []*berthv1.DecisionNode{{Node: "node2", Admitted: true, Rank: 1}}
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: d}, nil
	}
	w, _ := clitest.NewSite(t, f)
	clitest.Golden(t, "decision-show-home.golden", w.Run("decision", "show", "last").Out)
}

// A start that was drawn says among how many; where not every node was kept with the decision, only one of them is known.
func TestADrawSaysAmongHowMany(t *testing.T) {
	decision := &berthv1.Decision{Id: "d1", Round: 1, Nodes: []*berthv1.DecisionNode{
		{Node: "a", Admitted: true, Rank: 1, Band: 1},
		{Node: "b", Admitted: true, Rank: 2, Band: 1},
		{Node: "c", Admitted: true, Rank: 3, Band: 1},
		{Node: "d", Admitted: true, Rank: 4, Band: 1, Score: -1},
	}}
	if said := explanation.Placement(decision); said != "decision d1; 4 nodes, round 1, one of 3 equals, drawn" {
		t.Error(said)
	}
	decision.Nodes[0].Current = true
	if said := explanation.Placement(decision); said != "decision d1; 4 nodes, round 1, one of 3 equals" {
		t.Error(said)
	}
	decision.Nodes[0].Current = false
	decision.Omitted = 100
	if said := explanation.Placement(decision); said != "decision d1; 4 nodes, round 1, equal to b, drawn" {
		t.Error(said)
	}
}

// A VM may stay because no other node takes it. Then it is said who refuses it, and why.
func TestWhoStaysForWantOfAnotherNodeIsToldSo(t *testing.T) {
	refused := func(name, constraint, why string) *berthv1.DecisionNode {
		return &berthv1.DecisionNode{Node: name, Constraints: []*berthv1.ConstraintResult{{Constraint: constraint, Message: why}}}
	}
	d := &berthv1.Decision{Nodes: []*berthv1.DecisionNode{
		{Node: "hv1", Admitted: true, Current: true, Rank: 1}, refused("hv2", "maintenance", "the node is in maintenance"),
	}}
	want := []string{"what would have to differ: hv2 refuses it: the node is in maintenance"}
	if said := explanation.Differing(d); !slices.Equal(said, want) {
		t.Errorf("of one other: %q", said)
	}
	d.Nodes = append(d.Nodes, refused("hv3", "maintenance", ""), refused("hv4", "network", ""))
	want = []string{"what would have to differ: another node would have to take it: maintenance refuses 2, network refuses 1"}
	if said := explanation.Differing(d); !slices.Equal(said, want) {
		t.Errorf("of three others: %q", said)
	}
	d.Nodes[3] = &berthv1.DecisionNode{Node: "hv4", Admitted: true, Rank: 2}
	if said := explanation.Differing(d); len(said) != 0 {
		t.Errorf("where another takes it: %q", said)
	}
}
