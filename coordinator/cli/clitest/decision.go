package clitest

import (
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// decisionFake answers about decisions, and why they are as they are.
type decisionFake struct {
	decisions     func(*berthv1.ListDecisionsRequest) (*berthv1.ListDecisionsResponse, error)
	OnGetDecision func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error)
	OnReplay      func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error)
	whyVM         func(*berthv1.WhyVMRequest) (*berthv1.WhyVMResponse, error)
	whyNot        func(*berthv1.WhyNotRequest) (*berthv1.WhyNotResponse, error)
	OnRoomFor     func(*berthv1.CapacityRequest) (*berthv1.CapacityResponse, error)
	OnHistory     func(*berthv1.ListHistoryRequest) (*berthv1.ListHistoryResponse, error)
	spread        func(*berthv1.SpreadRequest) (*berthv1.SpreadResponse, error)
}

func (f *decisionFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListDecisionsProcedure, &f.decisions)
	unary(l, berthv1connect.BerthServiceGetDecisionProcedure, &f.OnGetDecision)
	unary(l, berthv1connect.BerthServiceReplayDecisionProcedure, &f.OnReplay)
	unary(l, berthv1connect.BerthServiceWhyVMProcedure, &f.whyVM)
	unary(l, berthv1connect.BerthServiceWhyNotProcedure, &f.whyNot)
	unary(l, berthv1connect.BerthServiceCapacityProcedure, &f.OnRoomFor)
	unary(l, berthv1connect.BerthServiceSpreadProcedure, &f.spread)
	unary(l, berthv1connect.BerthServiceListHistoryProcedure, &f.OnHistory)
}

func cannedDecisionAnswers() decisionFake {
	return decisionFake{
		decisions: func(*berthv1.ListDecisionsRequest) (*berthv1.ListDecisionsResponse, error) {
			return &berthv1.ListDecisionsResponse{SchemaVersion: "1", Decisions: []*berthv1.Decision{CannedRefusal(), CannedDecision()}}, nil
		},
		OnHistory: cannedHistory,
		OnGetDecision: func(r *berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
			decision := CannedDecision()
			switch r.GetId() {
			case "big":
				decision = CannedRefusal()
			case "bands":
				decision = CannedBandRefusal()
			case "old":
				decision = cannedOldDecision()
			case "many":
				decision = manyNodes(14, 40)
			case "ranked":
				decision = cannedRanked()
			}
			return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: decision}, nil
		},
		OnReplay: func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error) {
			return &berthv1.ReplayDecisionResponse{SchemaVersion: "1", Equal: true, Decision: CannedDecision()}, nil
		},
		whyVM: func(*berthv1.WhyVMRequest) (*berthv1.WhyVMResponse, error) {
			return &berthv1.WhyVMResponse{
				SchemaVersion: "1", Decision: CannedDecision(),
				Answer: []string{"vm/web1 runs on node2 because its key Group1 keeps it away from node1"},
			}, nil
		},
		whyNot: func(r *berthv1.WhyNotRequest) (*berthv1.WhyNotResponse, error) {
			at := Ago(0)
			if r.GetDecisionId() != "" {
				at = Ago(18 * time.Minute)
			}
			return &berthv1.WhyNotResponse{
				SchemaVersion: "1", DecisionId: r.GetDecisionId(), Node: CannedDecision().GetNodes()[1], At: at,
				Answer:  []string{"node1 was good enough in round 1, and its customer score is 100 behind that of node2"},
				Changes: []string{"without key Group1, node1 or node2 by lot"},
			}, nil
		},
		OnRoomFor: func(r *berthv1.CapacityRequest) (*berthv1.CapacityResponse, error) {
			answer := &berthv1.CapacityResponse{
				SchemaVersion: "1", More: 12, Cluster: "default", RunsOutOf: "memory-promised",
				RunsOutFirst: "no node fits: of 3 nodes, running refuses 1, memory-promised refuses 1, memory-physical refuses 1; nearest is node1",
				Nodes: []*berthv1.CapacityNode{
					{Node: "node1", More: 5, RunsOutOf: "memory-promised", Message: "3 GiB are not promised yet, more than 5 GiB is needed"},
					{Node: "node2", More: 7, RunsOutOf: "memory-physical", Message: "4.5 GiB are physically free, more than 5 GiB is needed"},
					{Node: "node3", RunsOutOf: "running", Message: "the node is unreachable"},
				},
			}
			if r.GetAddNodes() > 0 {
				answer.Without, answer.Added = new(answer.GetMore()), "as node1 is without its VMs: 16 CPUs, 64 GiB of memory, no labels"
			}
			for i := range r.GetAddNodes() {
				answer.More += 11
				answer.Nodes = append(answer.GetNodes(), &berthv1.CapacityNode{
					Node: fmt.Sprintf("node1+%d", i+1), More: 11, Added: true, RunsOutOf: "memory-promised",
					Message: "4 GiB are not promised yet, more than 5 GiB is needed",
				})
			}
			return answer, nil
		},
		spread: func(r *berthv1.SpreadRequest) (*berthv1.SpreadResponse, error) {
			return &berthv1.SpreadResponse{
				SchemaVersion: "1", Customer: r.GetCustomer(), Vms: 9,
				Zones: &berthv1.SpreadLevel{Used: 1, Total: 1, Most: 9, Least: 9}, Pods: &berthv1.SpreadLevel{Used: 4, Total: 4, Most: 3, Least: 2},
				Clusters: &berthv1.SpreadLevel{Used: 9, Total: 12, Most: 1, Least: 1}, Nodes: &berthv1.SpreadLevel{
					Used: 9, Total: 200, Most: 1, Least: 1,
				},
			}, nil
		},
	}
}

// CannedDecision has two candidates and a refused node.
func CannedDecision() *berthv1.Decision {
	system := func(key string, raw, proximity, weight float64) *berthv1.ScoreTerm {
		return &berthv1.ScoreTerm{
			Weigher: "system-keys", Key: key, Raw: raw, Proximity: &proximity, Weight: weight, Contribution: proximity * weight,
			Wanted: proto.Float64(0), Class: "system", Level: "cluster",
		}
	}
	passed := func(available float64) []*berthv1.ConstraintResult {
		return []*berthv1.ConstraintResult{
			{Constraint: "running", Passed: true},
			{
				Constraint: "memory-physical", Passed: true, Needed: proto.Float64(1.5 * float64(Gib)), Available: proto.Float64(available),
				Unit: "bytes", InputAgeSeconds: proto.Float64(1.2),
			},
		}
	}
	return &berthv1.Decision{
		Id: "3nqk7d2m0d1ab", Purpose: "start", Vm: "web1", Policy: "affinity", MadeAt: Ago(90 * time.Second), Caller: "operator/admin",
		Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED, Winner: "node2", WinnerId: "3nqk7d2m0n2aa", Margin: 100,
		Reason:         "node2 is the best of 2 nodes of round 1 by customer keys, 100 more than node1",
		Counterfactual: "without key Group1, node1 or node2 by lot",
		Seed:           42, OperationId: "3nqk7d2m0x1ab", Cluster: "default", Round: 1, Kept: 3,
		Request: &berthv1.DecisionRequest{
			MemoryBytes: Gib / 2, Vcpus: 2,
			SystemKeys: []*berthv1.CompiledKey{
				{Name: "#CPU", Weight: 30, Class: "system", Level: "cluster"},
				{Name: "#LOAD", Weight: 20, Class: "system", Level: "cluster"},
				{Name: "#RAM", Weight: 50, Class: "system", Level: "cluster"},
			},
			CustomerKeys: []*berthv1.CompiledKey{{Name: "Group1", Value: 1, Weight: -100, Class: "customer", Level: "vm"}},
		},
		Order: "first-fit: 2 nodes in 1 tier", Gate: "round 1 of 10, threshold 80: 2 nodes", Selector: "customer score",
		Nodes: []*berthv1.DecisionNode{
			{
				Node: "node2", NodeId: "3nqk7d2m0n2aa", Admitted: true, SystemScore: 93.1, Rank: 1, Tier: 1, Band: 1,
				Constraints: passed(40 * float64(Gib)),
				Terms:       []*berthv1.ScoreTerm{system("#RAM", 0.25, 0.95, 50), system("#CPU", 0.1, 0.9, 30), system("#LOAD", 0.02, 0.93, 20)},
			},
			{
				Node: "node1", NodeId: "3nqk7d2m0n1aa", Admitted: true, SystemScore: 88.9, CustomerScore: -100, Score: -100, Rank: 2, Tier: 1, Band: 1,
				Constraints: passed(30 * float64(Gib)),
				Terms: []*berthv1.ScoreTerm{
					system("#RAM", 0.5, 0.85, 50), system("#CPU", 0.2, 0.9, 30), system("#LOAD", 0.05, 0.97, 20),
					{
						Weigher: "customer-keys", Key: "Group1", Raw: 1, Wanted: proto.Float64(1), Proximity: proto.Float64(1), Weight: -100,
						Contribution: -100,
						Count:        1, Class: "customer", Level: "vm",
					},
				},
			},
			cannedRefusedNodes()[1],
		},
	}
}

// cannedOldDecision is as the first release recorded it: one score, and neither rounds nor customer keys.
func cannedOldDecision() *berthv1.Decision {
	d := CannedDecision()
	d.Round, d.Kept, d.Margin, d.Cluster, d.Policy = 0, 0, 4.2, "", "fco"
	d.Reason, d.Counterfactual, d.Gate, d.Selector = "node2 scores 93.1, 4.2 more than node1; 1 of 3 nodes refused",
		"without #RAM, node1 would win", "off", "raw score of system-keys"
	d.Request.SystemKeys, d.Request.CustomerKeys = nil, nil
	for _, node := range d.GetNodes()[:2] {
		node.Score, node.SystemScore, node.CustomerScore, node.Band = node.GetSystemScore(), 0, 0, 0
		node.Terms = node.GetTerms()[:3]
		for _, term := range node.GetTerms() {
			term.Wanted, term.Class, term.Level = nil, "", ""
		}
	}
	return d
}

// CannedBandRefusal has nodes that no constraint refuses, and no system round that any of them passes.
func CannedBandRefusal() *berthv1.Decision {
	d := CannedDecision()
	d.Outcome, d.Winner, d.WinnerId, d.Margin, d.Round, d.FailedPhase = berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED, "", "",
		0, 0, "system"
	d.Reason, d.Counterfactual = "no node is good enough: the best of 2 candidates is node2 with -20, and the last threshold is -10", ""
	d.Changes = []string{"without key Licence of vdc/acme-prod, node2", "final_msav of cluster/default at -21, node2"}
	for i, node := range d.GetNodes()[:2] {
		node.Admitted, node.Band, node.Rank, node.SystemScore, node.Score, node.CustomerScore = false, 0, 0, -20-float64(i), 0, 0
		node.Constraints = append(node.Constraints, &berthv1.ConstraintResult{
			Constraint: "bands", Code: "below_final", Message: "system score " + strconv.FormatFloat(
				node.GetSystemScore(), 'g', -1, 64,
			) + " does not exceed -10",
			Needed: proto.Float64(-10), Available: proto.Float64(node.GetSystemScore()), Unit: "score",
		})
	}
	return d
}

func cannedRefusedNodes() []*berthv1.DecisionNode {
	return []*berthv1.DecisionNode{
		{Node: "node1", NodeId: "3nqk7d2m0n1aa", Constraints: []*berthv1.ConstraintResult{
			{Constraint: "running", Passed: true},
			{
				Constraint: "memory-promised", Code: "short",
				Message: "75.5 GiB are not promised yet, more than 257 GiB is needed (VM 256 GiB, overhead 1 GiB)",
				Needed:  proto.Float64(257 * float64(Gib)), Available: proto.Float64(75.5 * float64(Gib)), Unit: "bytes",
			},
			{
				Constraint: "memory-physical", Code: "short",
				Message: "40 GiB are physically free, more than 257 GiB is needed (VM 256 GiB, overhead 1 GiB)",
				Needed:  proto.Float64(257 * float64(Gib)), Available: proto.Float64(40 * float64(Gib)), Unit: "bytes",
				InputAgeSeconds: proto.Float64(1.2),
			},
		}},
		{Node: "node3", NodeId: "3nqk7d2m0n3aa", Constraints: []*berthv1.ConstraintResult{
			{Constraint: "running", Code: "unreachable", Message: "the node is unreachable: no session for 3m12s"},
		}},
	}
}

// CannedRefusal is a decision that found no node.
func CannedRefusal() *berthv1.Decision {
	return &berthv1.Decision{
		Id: "3nqk7d2m0d9zz", Purpose: "start", Vm: "big", Policy: "affinity", MadeAt: Ago(time.Second), Caller: "operator/admin",
		Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED, Nodes: cannedRefusedNodes(),
		Reason:      "no node fits: of 2 nodes, running refuses 1, memory-promised refuses 1, memory-physical refuses 1; nearest is node1",
		FailedPhase: "constraint", Cluster: "default",
		Changes: []string{"a VM of 39 GiB would fit on node1", "with vm/db1 (8 GiB) moved from node1 to node2, node1"},
		Request: &berthv1.DecisionRequest{MemoryBytes: 256 * Gib, Vcpus: 2},
	}
}

// cannedRanked was decided by three weighers together.
func cannedRanked() *berthv1.Decision {
	d := CannedDecision()
	d.Policy, d.Round, d.Gate, d.Selector = "vm-evenly-distributed", 0, "off", "rank: of 3 weighers the sum of rank x factor"
	d.Request.SystemKeys, d.Request.CustomerKeys = nil, nil
	d.Reason, d.Margin, d.Counterfactual, d.Changes = "node2 has the highest sum of ranks of 2 nodes, 19 more than node1", 19, "", nil
	d.Request.Unit, d.Request.PreferredNodes, d.Request.Leave = []string{"web2"}, []string{"node1"}, true
	d.RankNodes = []string{"node2", "node1"}
	for i, node := range d.GetNodes()[:2] {
		node.Band, node.SystemScore, node.CustomerScore, node.Terms = 0, 0, 0, nil
		node.Score = []float64{43, 24}[i]
	}
	for _, row := range []struct {
		weigher string
		factor  float64
		cells   []*berthv1.RankCell
	}{
		{"vm-count", 2, []*berthv1.RankCell{{Rank: 1, Weight: 3}, {Rank: 2, Weight: 1}}},
		{"node-affinity", 20, []*berthv1.RankCell{{Rank: 2, Weight: 1}, {Rank: 1, Weight: 2}}},
		{"vm-affinity", 1, []*berthv1.RankCell{{Rank: 1}, {}}},
	} {
		d.Ranks = append(d.Ranks, &berthv1.RankRow{Weigher: row.weigher, Factor: row.factor, Cells: row.cells})
	}
	d.Ranks = append(d.Ranks, &berthv1.RankRow{
		Weigher: "preferred-nodes", Factor: 99, Cells: []*berthv1.RankCell{{Rank: 1}, {Rank: 1}}, Silent: true,
	})
	return d
}

// manyNodes makes a decision of so many candidates and so many refused nodes.
func manyNodes(candidates, refused int) *berthv1.Decision {
	d := CannedDecision()
	template, bad := d.GetNodes()[0], cannedRefusedNodes()
	d.Nodes, d.Kept, d.Omitted = nil, int32(candidates+refused), 872
	for i := range candidates {
		node := proto.Clone(template).(*berthv1.DecisionNode)
		node.Node, node.Rank = "hv"+strconv.Itoa(i+1), int32(i+1)
		d.Nodes = append(d.Nodes, node)
	}
	for i := range refused {
		node := proto.Clone(bad[i%2]).(*berthv1.DecisionNode)
		node.Node = "old" + strconv.Itoa(i+1)
		d.Nodes = append(d.Nodes, node)
	}
	return d
}
