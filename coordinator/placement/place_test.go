package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

func TestSameInputSameDecisionWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		want := Explain(Place(s.view(), request, s.policy(), seed))
		if diff := cmp.Diff(want, Explain(Place(s.view(), request, s.policy(), seed))); diff != "" {
			t.Fatalf("the same again (-want +got):\n%s", diff)
		}
		s.nodes = rapid.Permutation(s.nodes).Draw(t, "nodes")
		s.vms = rapid.Permutation(s.vms).Draw(t, "vms")
		if diff := cmp.Diff(want, Explain(Place(s.view(), request, s.policy(), seed))); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
	})
}

func TestARefusedNodeIsNeverChosenAndNoNodeIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		d := Explain(Place(s.view(), request, s.policy(), seed))
		if len(d.Nodes) != len(s.nodes) || d.Reason == "" {
			t.Fatalf("%d of %d nodes, reason %q", len(d.Nodes), len(s.nodes), d.Reason)
		}
		admitted := 0
		for i, node := range d.Nodes {
			refusals := slices.ContainsFunc(node.Constraints, func(c ConstraintResult) bool { return !c.Passed })
			if node.Admitted == refusals {
				t.Fatalf("%s: admitted %t with refusals %t", node.Name, node.Admitted, refusals)
			}
			for _, c := range node.Constraints {
				if !c.Passed && (c.Message == "" || c.Code == "") {
					t.Fatalf("%s: %s refuses without saying why", node.Name, c.Constraint)
				}
			}
			if node.Admitted {
				admitted++
				if node.Rank != i+1 || node.Rank != admitted {
					t.Fatalf("%s stands at %d with rank %d", node.Name, i, node.Rank)
				}
			}
		}
		switch {
		case (d.Outcome == Refused) != (admitted == 0):
			t.Fatalf("%s with %d admitted", d.Outcome, admitted)
		case (d.Outcome == Refused) != (d.FailedPhase != ""):
			t.Fatalf("%s with phase %q", d.Outcome, d.FailedPhase)
		case d.Outcome == Refused && d.Winner != "":
			t.Fatalf("refused, and %s won", d.Winner)
		case d.Outcome != Refused && (d.Nodes[0].Node != d.Winner || !d.Nodes[0].Admitted):
			t.Fatalf("%s won, first is %+v", d.Winner, d.Nodes[0])
		case d.Outcome != Refused && d.Nodes[0].Band != d.Round:
			t.Fatalf("round %d, the winner's is %d", d.Round, d.Nodes[0].Band)
		case d.Outcome != Refused && (d.Outcome == Stay) != (d.Winner == request.Current):
			t.Fatalf("%s on %s, the VM runs on %s", d.Outcome, d.Winner, request.Current)
		case request.Pinned != "" && d.Winner != "" && d.Winner != request.Pinned:
			t.Fatalf("%s won, %s was asked for", d.Winner, request.Pinned)
		case request.Home != "" && d.Winner != "" && d.Winner != request.Home:
			t.Fatalf("%s won, the disk is on %s", d.Winner, request.Home)
		case slices.Contains(request.Excluded, d.Winner):
			t.Fatalf("%s won, which had failed before", d.Winner)
		}
	})
}

// The design's rounds and customer round, written down once more without any of the engine's stages.
func TestTheWinnerIsTheOneOfTheDesign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		request.IfBetter, request.Home = 0, ""
		policy, _ := policies.Builtin(policies.Affinity, model.SettingsOf(&s.cluster))
		d := Explain(Place(s.view(), request, policy, seed))
		var candidates []NodeResult
		for _, node := range d.Nodes {
			refused := slices.ContainsFunc(node.Constraints, func(c ConstraintResult) bool {
				return !c.Passed && c.Constraint != string(policies.GateBands)
			})
			if !refused {
				candidates = append(candidates, node)
			}
		}
		for _, threshold := range []float64{80, 70, 60, 50, 40, 30, 20, 10, 0, -10} {
			band := slices.DeleteFunc(slices.Clone(candidates), func(n NodeResult) bool { return !(n.SystemScore > threshold) })
			if len(band) == 0 {
				continue
			}
			highest := slices.MaxFunc(band, func(a, b NodeResult) int { return int(math.Copysign(1, a.CustomerScore-b.CustomerScore)) })
			at := slices.IndexFunc(band, func(n NodeResult) bool { return n.Node == d.Winner })
			if at < 0 || band[at].CustomerScore != highest.CustomerScore {
				t.Fatalf("%s won above %v, want one like %s:\n%s", d.WinnerName, threshold, highest.Name, FullText(d))
			}
			return
		}
		if d.Outcome != Refused {
			t.Fatalf("%s won, and no system score is above -10", d.WinnerName)
		}
	})
}

// A record stays small on a large cluster, and still has the nodes that matter.
func TestTheRecordOfALargeClusterIsBounded(t *testing.T) {
	view := crowd(1000) // one in eight is full
	request := Request{
		Purpose: ForMigrate, VM: "n000999-1", VMName: "last", Memory: 4 * units.GiB, VCPUs: 2, Current: "n000999",
		SystemKeys: specials(),
	}
	for _, pinned := range []string{"", "n000992"} {
		request.Pinned = pinned
		d := Explain(Place(view, request, policies.Default(), 1))
		if len(d.Nodes) > keptOfMore || len(d.Nodes) < keptOfMore*3/4 || len(d.Nodes)+d.Omitted != 1000 {
			t.Errorf("%d nodes recorded, %d omitted", len(d.Nodes), d.Omitted)
		}
		for _, id := range []string{request.Current, request.Pinned} {
			if id != "" && !slices.ContainsFunc(d.Nodes, func(n NodeResult) bool { return n.Node == id }) {
				t.Errorf("%s is not in the record", id)
			}
		}
		if !strings.HasSuffix(Text(d), fmt.Sprintf("and %d more nodes\n", d.Omitted)) {
			t.Errorf("the explanation does not say that %d are missing", d.Omitted)
		}
		if _, err := Replay(through(t, d)); err != nil {
			t.Error(err)
		}
	}
}

// Spare room is left out: restarts are planned one after the other, and a plan of that kind may end worse where it has more room.
func TestMoreMemoryNeverTurnsAdmitIntoRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		delete(s.cluster.Settings, model.SettingSpareNodes)
		policy := s.policy()
		policy.Gate = policies.Gate{Kind: policies.GateOff} // #RAM scores; only constraints are hard
		before := Explain(Place(s.view(), request, policy, seed))
		id := rapid.SampledFrom(s.nodes).Draw(t, "grown").ID
		facts := s.facts[id]
		more := units.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "more"))
		facts.Memory += more
		facts.Available = ptr(*facts.Available + more)
		s.facts[id] = facts
		after := Explain(Place(s.view(), request, policy, seed))
		for _, was := range before.Nodes {
			is := after.Nodes[slices.IndexFunc(after.Nodes, func(n NodeResult) bool { return n.Node == was.Node })]
			if was.Admitted && !is.Admitted {
				t.Fatalf("%s was admitted, and is refused with %v more: %+v", was.Name, more, is.Constraints)
			}
		}
	})
}

// A stranger's VM can neither be detected nor repelled, and neither attracts: only what it takes of the node is felt.
func TestStrangersAreNotFelt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		s.cluster.Settings = nil // scope customer
		before := Explain(Place(s.view(), request, s.policy(), seed))
		for i := range s.vms {
			if s.vms[i].Owner.Customer == request.Owner.Customer {
				continue
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				s.vms[i].Resident = append(s.vms[i].Resident, model.ResidentKey{
					Class: model.CustomerKey, Name: rapid.SampledFrom([]string{"A", "B", "_C"}).Draw(t, "name"),
					Value: float64(rapid.IntRange(0, 2).Draw(t, "value")),
				})
			}
		}
		if diff := cmp.Diff(before, Explain(Place(s.view(), request, s.policy(), seed))); diff != "" {
			t.Fatalf("(-without +with strangers' keys):\n%s", diff)
		}
	})
}

func TestTheTermsAddUpToTheScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		for _, node := range Explain(Place(s.view(), request, s.policy(), seed)).Nodes {
			sums, combined := make(map[string]float64), 0.0
			for _, term := range node.Terms {
				if term.Key == "" {
					combined += term.Contribution
					continue
				}
				if term.Proximity == nil { // of a group
					sums[term.Weigher] += term.Contribution
					continue
				}
				sums[term.Weigher] += term.Contribution
				if math.Abs(*term.Proximity*term.Weight*float64(max(term.Count, 1))-term.Contribution) > 1e-9 {
					t.Fatalf("%s: %+v", node.Name, term)
				}
			}
			if len(node.Terms) > 0 && node.SystemScore != 0 && sums[policies.SystemScore] != node.SystemScore ||
				sums[policies.CustomerScore] != node.CustomerScore {
				t.Fatalf("%s: the terms add up to %v, the scores are %v and %v", node.Name, sums, node.SystemScore, node.CustomerScore)
			}
			if combined != 0 && combined != node.Score {
				t.Fatalf("%s: the weighers add up to %v, the score is %v", node.Name, combined, node.Score)
			}
		}
	})
}

func TestStayingWinsATieAndOnlyATie(t *testing.T) {
	const text = `
node node1 memory=16G cpus=4 available=15G load=0
node node2 memory=16G cpus=4 available=15G load=0
node node3 memory=16G cpus=4 available=15G load=0
vm web on=node1 memory=1G vcpus=1 resident=1G cpu=0
vm friend on=node2 memory=1G vcpus=1 resident=1G cpu=0 shows=G:1
migrate web wants=G:1:%s
`
	for seed := range uint64(100) {
		s := parseScenario(t, fmt.Sprintf(text, "1e-300"))
		if d := Place(s.view(), s.asked[0].request, s.policy(), seed); d.Winner != "node2" || d.Outcome != Placed {
			t.Fatalf("seed %d: %s", seed, d.Reason)
		}
		s = parseScenario(t, fmt.Sprintf(text, "0"))
		if d := Place(s.view(), s.asked[0].request, s.policy(), seed); d.Outcome != Stay || d.Margin != 0 {
			t.Fatalf("seed %d: %s", seed, d.Reason)
		}
	}
}

func TestEqualsAreDrawnEvenly(t *testing.T) {
	columns := emptyNodes("node1", "node2", "node3", "node4")
	engine, err := NewEngine(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	request := &Request{Memory: units.GiB, SystemKeys: specials()}
	const rounds = 4000
	wins := make([]int, 4)
	for seed := range uint64(rounds) {
		choice := engine.Choose(columns, noon, request, seed)
		if choice.Ties != 4 || choice.Band != 4 || choice.Margin != 0 {
			t.Fatalf("%+v", choice)
		}
		wins[choice.Node]++
	}
	for node, n := range wins {
		if n < rounds/4*9/10 || n > rounds/4*11/10 {
			t.Errorf("node%d won %d of %d draws among four", node+1, n, rounds)
		}
	}
}

func TestAPolicyThatIsNotValidPlacesNothing(t *testing.T) {
	for want, change := range map[string]func(*policies.Policy){
		`there is no constraint "memory"`:   func(p *policies.Policy) { p.Constraints = append(p.Constraints, "memory") },
		`constraint "fresh" is there twice`: func(p *policies.Policy) { p.Constraints = append(p.Constraints, "fresh") },
		`constraint "pin" cannot be left out`: func(p *policies.Policy) {
			p.Constraints = []string{"running", "excluded", "local-storage"}
		},
		`there is no planner "best"`:                 func(p *policies.Policy) { p.Planner = "best" },
		`there is no weigher "luck"`:                 func(p *policies.Policy) { p.Weighers[0].Weigher = "luck" },
		`weigher "customer-keys" is there twice`:     func(p *policies.Policy) { p.Weighers = append(p.Weighers, p.Weighers...) },
		`the factor of weigher "customer-keys" is N`: func(p *policies.Policy) { p.Weighers[0].Factor = math.NaN() },
		`there is no selector "raw"`:                 func(p *policies.Policy) { p.Selector = "raw" },
		`there is no gate ""`:                        func(p *policies.Policy) { p.Gate = policies.Gate{} },
		`gate: 0 steps, want 1 to 1000`:              func(p *policies.Policy) { p.Gate = policies.Gate{Kind: policies.GateBands} },
		`gate: initial -20 and final -10`:            func(p *policies.Policy) { p.Gate.Initial = -20 },
		`gate: initial +Inf and final -10`:           func(p *policies.Policy) { p.Gate.Initial = math.Inf(1) },
		`there is no customer key scope "world"`:     func(p *policies.Policy) { p.CustomerKeyScope = "world" },
	} {
		p := policies.Default()
		change(&p)
		err := Validate(p)
		if !errors.Is(err, ErrInvalidPolicy) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
			continue
		}
		d := PlaceOn(emptyNodes("node1"), noon, Request{Memory: units.GiB}, p, 1)
		if d.Outcome != Refused || d.Reason != err.Error() {
			t.Errorf("placed all the same: %s", d.Reason)
		}
	}
	if err := Validate(policies.Default()); err != nil {
		t.Errorf("the built-in policy: %v", err)
	}
}

func TestARequestThatIsNotValidIsRefused(t *testing.T) {
	for want, request := range map[string]Request{
		`key "A" has value 1e+300 and weight 1, want`: {SystemKeys: []key.Weighted{{Name: "A", Value: 1e300, Weight: 1}}},
		`key "B" has value 0 and weight NaN, want`:    {CustomerKeys: []key.Weighted{{Name: "B", Weight: math.NaN()}}},
		`key "A" is there twice`:                      {SystemKeys: []key.Weighted{{Name: "A", Weight: 1}, {Name: "A", Weight: 1}}},
		`a gain of -1 is asked for`:                   {IfBetter: -1},
	} {
		d := PlaceOn(emptyNodes("node1"), noon, request, policies.Default(), 1)
		if d.Outcome != Refused || !strings.Contains(d.Reason, want) {
			t.Errorf("%s: %s, want %s", d.Outcome, d.Reason, want)
		}
		if Explain(d).Nodes != nil {
			t.Error("it is explained without having been made")
		}
	}
}
