package cli

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestReplayThatDiffers(t *testing.T) {
	f := steady()
	f.replay = func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error) {
		return &berthv1.ReplayDecisionResponse{
			SchemaVersion: "1", Decision: cannedDecision(), Differences: []string{"winner: node2, again node1", "round: 1, again 2"},
		}, nil
	}
	w, _ := newWorld(t, f)
	said := w.run("decision", "replay", "last")
	if said.exit != Failed {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "decision-replay-differs.golden", said.out+errSection(said.errOut))
}

// A refusal by system keys shows what the nodes scored, beside what else refused them.
func TestNoNodeIsGoodEnough(t *testing.T) {
	f := steady()
	f.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.NoNodeFits, Subject: "vm/web1", Decision: cannedBandRefusal(), NextStep: "see 'berth decision show 3nqk7d2m0d1ab'",
		}, "%s", cannedBandRefusal().GetReason())
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1")
	if said.exit != NoNodeFits {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "error-no-node-good-enough.golden", said.errOut)
}

func TestCapacityInWords(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	var many []*berthv1.CapacityNode
	for i := range 40 {
		many = append(many, &berthv1.CapacityNode{Node: "hv" + position(int32(i+1)), More: int32(i % 2)})
	}
	for _, c := range []struct {
		answer *berthv1.CapacityResponse
		want   string
	}{
		{&berthv1.CapacityResponse{}, "none fits\n"},
		{
			&berthv1.CapacityResponse{RunsOutOf: "pin", RunsOutFirst: "no node fits", Nodes: []*berthv1.CapacityNode{{Node: "hv1"}}},
			"none fits: hv1 0\npin runs out first: no node fits\n",
		},
		{&berthv1.CapacityResponse{More: 10, AtLeast: true, Nodes: []*berthv1.CapacityNode{{Node: "hv1", More: 10}}}, "at least 10 more fit: hv1 10\n"},
		{&berthv1.CapacityResponse{More: 20, Nodes: many}, "20 more fit on 20 of 40 nodes\n"},
	} {
		f.roomFor = func(*berthv1.CapacityRequest) (*berthv1.CapacityResponse, error) { return c.answer, nil }
		if said := w.run("capacity", "--memory", "1G"); said.exit != Done || said.out != c.want {
			t.Errorf("exit %d, %q, want %q", said.exit, said.out, c.want)
		}
	}
}

// In a cluster with local storage a VM is placed when it is declared: the answer says where its disk belongs.
func TestAddPlacesWhereStorageIsLocal(t *testing.T) {
	f := steady()
	f.addVM = func(r *berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
		decision := cannedDecision()
		decision.Purpose, decision.DryRun = "create", r.GetDryRun()
		return &berthv1.AddVMResponse{SchemaVersion: "1", Vm: &berthv1.VM{Name: "web1", Home: "node2"}, Decision: decision}, nil
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "add", "web1", "--memory", "1G")
	if want := "vm/web1 added, its disk belongs on node2 (decision 3nqk7d2m0d1ab; 2 of 3 nodes fit, round 1, next best node1 by 100)\n"; said.out != want {
		t.Errorf("said %q, want %q", said.out, want)
	}
	if said := w.run("vm", "add", "web1", "--memory", "1G", "--dry-run"); !strings.HasPrefix(said.out, "dry run 3nqk7d2m0d1ab: nothing was changed\n") {
		t.Errorf("said %q", said.out)
	}
	f.addVM = func(*berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.NoNodeFits, Decision: cannedRefusal()}, "no node fits")
	}
	if said := w.run("vm", "add", "web1", "--memory", "1G", "--dry-run"); said.exit != NoNodeFits || !strings.Contains(said.out, "memory-promised") {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
}

// Terms say what is unusual, where anything is.
func TestTermsHaveNotes(t *testing.T) {
	f := steady()
	f.getDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		d := cannedDecision()
		d.GetNodes()[0].GetTerms()[0].Note = "the node's load is not known"
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: d}, nil
	}
	w, _ := newWorld(t, f)
	if said := w.run("decision", "show", "last", "--full"); !strings.Contains(said.out, "CONTRIBUTION  NOTE\n") || !strings.Contains(said.out, "  the node's load is not known\n") {
		t.Errorf("said %s", said.out)
	}
}

// Where the VM's disk says which node it is, nothing is scored, and no score is shown.
func TestWithoutKeysThereIsNoScore(t *testing.T) {
	f := steady()
	f.getDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		d := cannedDecision()
		d.Round, d.Request.HomeNode, d.Counterfactual, d.Margin = 0, "node2", "", 0
		d.Reason = "node2 has the VM's disk: with local storage it starts there, and no keys are looked at"
		d.Nodes = []*berthv1.DecisionNode{{Node: "node2", Admitted: true, Rank: 1}}
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: d}, nil
	}
	w, _ := newWorld(t, f)
	golden(t, "decision-show-home.golden", w.run("decision", "show", "last").out)
}

// A start that was drawn says among how many; where not every node was kept with the decision, only one of them is known.
func TestADrawSaysAmongHowMany(t *testing.T) {
	decision := &berthv1.Decision{Id: "d1", Round: 1, Nodes: []*berthv1.DecisionNode{
		{Node: "a", Admitted: true, Rank: 1, Band: 1},
		{Node: "b", Admitted: true, Rank: 2, Band: 1},
		{Node: "c", Admitted: true, Rank: 3, Band: 1},
		{Node: "d", Admitted: true, Rank: 4, Band: 1, Score: -1},
	}}
	if said := placement(decision); said != "decision d1; 4 nodes, round 1, one of 3 equals" {
		t.Error(said)
	}
	decision.Omitted = 100
	if said := placement(decision); said != "decision d1; 4 nodes, round 1, equal to b" {
		t.Error(said)
	}
}

// A document that is asked for as YAML is one already, and not a text within YAML.
func TestExportAsYAMLIsTheDocument(t *testing.T) {
	w, _ := newWorld(t, steady())
	plain, yaml := w.run("export"), w.run("export", "-o", "yaml")
	if plain.exit != Done || plain.out == "" || yaml.out != plain.out {
		t.Errorf("as YAML %q, plain %q", yaml.out, plain.out)
	}
}
