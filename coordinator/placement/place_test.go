package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/shared/units"
)

// draws makes a random cluster with at least one node, a request and a policy, of every kind that the engine knows.
func draws(t *rapid.T) (*scenario, Request, uint64) {
	s := &scenario{facts: make(map[string]cluster.NodeFacts), policy: Affinity()}
	gib := func(label string, most int64) units.Bytes {
		return units.Bytes(rapid.Int64Range(0, most*4).Draw(t, label)) * units.GiB / 4
	}
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	for i := range nodes {
		id := fmt.Sprint("n", i)
		node := cluster.Node{ID: id, Name: "node-" + id, Maintenance: rapid.IntRange(0, 5).Draw(t, "maintenance") == 0}
		if rapid.Bool().Draw(t, "own settings") {
			node.Settings.RAMRatio = ptr(float64(rapid.IntRange(5, 30).Draw(t, "ratio")) / 10)
			node.Settings.Overhead = ptr(gib("overhead", 2))
		}
		s.nodes = append(s.nodes, node)
		facts := cluster.NodeFacts{
			Liveness:  rapid.SampledFrom([]cluster.Liveness{cluster.Up, cluster.Up, cluster.Up, cluster.Suspect}).Draw(t, "liveness"),
			Inventory: rapid.IntRange(0, 9).Draw(t, "inventory") > 0, InventoryAt: noon.Add(-20 * time.Second),
			Memory: gib("memory", 64) + units.GiB, CPUs: rapid.IntRange(1, 64).Draw(t, "cpus"), DomainsKnown: true,
			Telemetry:   rapid.IntRange(0, 9).Draw(t, "telemetry") > 0,
			TelemetryAt: noon.Add(-time.Duration(rapid.IntRange(0, 8).Draw(t, "age")) * time.Second),
			Available:   ptr(gib("available", 64)),
			Load1:       ptr(rapid.Float64Range(0, 80).Draw(t, "load")),
		}
		s.facts[id] = facts
	}
	some := func(label string) string { return fmt.Sprint("n", rapid.IntRange(0, nodes-1).Draw(t, label)) }
	for i := range rapid.IntRange(0, 10).Draw(t, "vms") {
		s.vms = append(s.vms, cluster.VM{
			ID: fmt.Sprint("u", i), Name: fmt.Sprint("vm", i), Desired: cluster.Running, Holder: some("holder"), Epoch: 1,
			Spec:      cluster.VMSpec{Memory: gib("size", 16), VCPUs: rapid.IntRange(1, 16).Draw(t, "vcpus")},
			StartedAt: noon.Add(-time.Duration(rapid.IntRange(0, 8).Draw(t, "start")) * time.Second),
		})
	}
	if rapid.Bool().Draw(t, "bands") {
		s.policy.Gate = Bands()
	}
	for i := range s.policy.SystemKeys {
		s.policy.SystemKeys[i].Weight = float64(rapid.IntRange(-50, 100).Draw(t, "weight"))
	}
	request := Request{
		Purpose: ForStart, VM: "new", VMName: "new", Memory: gib("request", 16) + units.MiB,
		VCPUs: rapid.IntRange(1, 8).Draw(t, "request vcpus"),
	}
	if len(s.vms) > 0 && rapid.Bool().Draw(t, "migrate") {
		vm := s.vms[0]
		request = Request{
			Purpose: ForMigrate, VM: vm.ID, VMName: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Current: vm.Holder,
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "pinned") == 0 {
		request.Pinned = some("pin")
	}
	if rapid.IntRange(0, 3).Draw(t, "excluded") == 0 {
		request.Excluded = []string{some("exclude")}
	}
	return s, request, rapid.Uint64().Draw(t, "seed")
}

func TestSameInputSameDecisionWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		want := Place(s.view(), request, s.policy, seed)
		if diff := cmp.Diff(want, Place(s.view(), request, s.policy, seed)); diff != "" {
			t.Fatalf("the same again (-want +got):\n%s", diff)
		}
		s.nodes = rapid.Permutation(s.nodes).Draw(t, "nodes")
		s.vms = rapid.Permutation(s.vms).Draw(t, "vms")
		if diff := cmp.Diff(want, Place(s.view(), request, s.policy, seed)); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
	})
}

func TestARefusedNodeIsNeverChosenAndNoNodeIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		d := Place(s.view(), request, s.policy, seed)
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
		case d.Outcome == Refused && d.Winner != "":
			t.Fatalf("refused, and %s won", d.Winner)
		case d.Outcome != Refused && (d.Nodes[0].Node != d.Winner || !d.Nodes[0].Admitted):
			t.Fatalf("%s won, first is %+v", d.Winner, d.Nodes[0])
		case d.Outcome != Refused && (d.Outcome == Stay) != (d.Winner == request.Current):
			t.Fatalf("%s on %s, the VM runs on %s", d.Outcome, d.Winner, request.Current)
		case request.Pinned != "" && d.Winner != "" && d.Winner != request.Pinned:
			t.Fatalf("%s won, %s was asked for", d.Winner, request.Pinned)
		case slices.Contains(request.Excluded, d.Winner):
			t.Fatalf("%s won, which had failed before", d.Winner)
		}
	})
}

// A record stays small on a large cluster, and still has the nodes that matter.
func TestTheRecordOfALargeClusterIsBounded(t *testing.T) {
	view := crowd(1000) // one in eight is full
	request := Request{
		Purpose: ForMigrate, VM: "n000999-1", VMName: "last", Memory: 4 * units.GiB, VCPUs: 2, Current: "n000999",
	}
	for pinned, most := range map[string]int{"": MaxRecorded + 1, "n000992": MaxRecorded + 2} {
		request.Pinned = pinned
		d := Place(view, request, Affinity(), 1)
		if len(d.Nodes) < MaxRecorded || len(d.Nodes) > most || len(d.Nodes)+d.Omitted != 1000 {
			t.Errorf("%d nodes recorded, %d omitted", len(d.Nodes), d.Omitted)
		}
		for _, id := range []string{request.Current, request.Pinned} {
			if id != "" && !slices.ContainsFunc(d.Nodes, func(n NodeResult) bool { return n.Node == id }) {
				t.Errorf("%s is not in the record", id)
			}
		}
		if !strings.HasSuffix(Explain(d), fmt.Sprintf("and %d more nodes\n", d.Omitted)) {
			t.Errorf("the explanation does not say that %d are missing", d.Omitted)
		}
	}
}

func TestMoreMemoryNeverTurnsAdmitIntoRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		s.policy.Gate = Gate{Kind: GateOff} // #RAM scores; only constraints are hard
		before := Place(s.view(), request, s.policy, seed)
		id := rapid.SampledFrom(s.nodes).Draw(t, "grown").ID
		facts := s.facts[id]
		more := units.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "more"))
		facts.Memory += more
		facts.Available = ptr(*facts.Available + more)
		s.facts[id] = facts
		after := Place(s.view(), request, s.policy, seed)
		for _, was := range before.Nodes {
			is := after.Nodes[slices.IndexFunc(after.Nodes, func(n NodeResult) bool { return n.Node == was.Node })]
			if was.Admitted && !is.Admitted {
				t.Fatalf("%s was admitted, and is refused with %v more: %+v", was.Name, more, is.Constraints)
			}
		}
	})
}

func TestTheTermsAddUpToTheScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		for _, node := range Place(s.view(), request, s.policy, seed).Nodes {
			sum := 0.0
			for _, term := range node.Terms {
				sum += term.Contribution
				if math.Abs(*term.Proximity*term.Weight-term.Contribution) > 1e-9 {
					t.Fatalf("%s: %+v", node.Name, term)
				}
			}
			if math.Abs(sum-node.Score) > 1e-9 {
				t.Fatalf("%s: the terms add up to %v, the score is %v", node.Name, sum, node.Score)
			}
		}
	})
}

// What a decision says would have changed it is tried out.
func TestCounterfactualsAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		d := Place(s.view(), request, s.policy, seed)
		if d.Counterfactual == "" {
			return
		}
		for _, sentence := range strings.Split(d.Counterfactual, "; ") {
			other, asked, policy := *s, request, s.policy
			other.nodes = slices.Clone(s.nodes)
			node := func(name string) *cluster.Node {
				return &other.nodes[slices.IndexFunc(other.nodes, func(n cluster.Node) bool { return n.Name == name })]
			}
			words := strings.Fields(sentence)
			var winner string
			switch {
			case strings.HasPrefix(sentence, "without #"):
				winner = words[2]
				policy.SystemKeys = slices.DeleteFunc(slices.Clone(policy.SystemKeys), func(k key.Weighted) bool {
					return k.Name == strings.TrimSuffix(words[1], ",")
				})
			case strings.HasPrefix(sentence, "a VM of"):
				amount, _ := strconv.ParseInt(words[3], 10, 64)
				unit := map[string]units.Bytes{"MiB": units.MiB, "GiB": units.GiB}[words[4]]
				asked.Memory = units.Bytes(amount) * unit
				winner = words[len(words)-1]
			case strings.HasPrefix(sentence, "with ram_ratio"):
				winner = words[3]
				ratio, _ := strconv.ParseFloat(strings.TrimSuffix(words[2], ","), 64)
				node(winner).Settings.RAMRatio = &ratio
			case strings.HasPrefix(sentence, "out of maintenance"):
				winner = words[3]
				node(winner).Maintenance = false
			case strings.HasPrefix(sentence, "without asking"):
				winner = words[4]
				asked.Pinned = ""
			case strings.HasPrefix(sentence, "with a final"):
				final, _ := strconv.ParseFloat(strings.TrimSuffix(words[5], ","), 64)
				winner = words[6]
				policy.Gate.Final = final - 0.01
			default:
				t.Fatalf("nobody tries out %q", sentence)
			}
			again := Place(other.view(), asked, policy, seed)
			found := slices.IndexFunc(again.Nodes, func(n NodeResult) bool { return n.Name == winner })
			wins := strings.HasSuffix(sentence, "would win")
			gate := policy.Gate.Kind == GateBands && !strings.HasPrefix(sentence, "with a final")
			if gate && !wins && len(again.Nodes[found].Terms) > 0 {
				continue // the constraints let it in, and the gate may still say no
			}
			if !again.Nodes[found].Admitted || wins && again.WinnerName != winner {
				t.Fatalf("%q is not true:\n%s\n%s", sentence, Explain(d), Explain(again))
			}
		}
	})
}

func TestStayingWinsATieAndOnlyATie(t *testing.T) {
	const text = `
node node1 memory=16G cpus=4 available=15G load=%s
node node2 memory=16G cpus=4 available=15G load=0
node node3 memory=16G cpus=4 available=15G load=0
vm web on=node1 memory=1G vcpus=1 resident=1G cpu=0
migrate web
`
	for seed := range uint64(100) {
		s := parseScenario(t, fmt.Sprintf(text, "0"))
		if d := Place(s.view(), s.asked[0].request, s.policy, seed); d.Outcome != Stay || d.Margin != 0 {
			t.Fatalf("seed %d: %s", seed, d.Reason)
		}
		s = parseScenario(t, fmt.Sprintf(text, "0.001"))
		if d := Place(s.view(), s.asked[0].request, s.policy, seed); d.Outcome != Placed {
			t.Fatalf("seed %d: %s", seed, d.Reason)
		}
	}
}

func TestEqualsAreDrawnEvenly(t *testing.T) {
	s := parseScenario(t, `
node node1 memory=16G cpus=4 available=15G load=0
node node2 memory=16G cpus=4 available=15G load=0
node node3 memory=16G cpus=4 available=15G load=0
node node4 memory=16G cpus=4 available=15G load=0
start new memory=1G vcpus=1
`)
	view, wins := s.view(), make(map[string]int)
	const rounds = 4000
	for seed := range uint64(rounds) {
		wins[Place(view, s.asked[0].request, s.policy, seed).Winner]++
	}
	for node, n := range wins {
		if n < rounds/4*9/10 || n > rounds/4*11/10 {
			t.Errorf("%s won %d of %d draws among four", node, n, rounds)
		}
	}
}

func TestAPolicyThatIsNotValidPlacesNothing(t *testing.T) {
	for want, change := range map[string]func(*Policy){
		`there is no constraint "memory"`:                 func(p *Policy) { p.Constraints = append(p.Constraints, "memory") },
		`constraint "fresh" is there twice`:               func(p *Policy) { p.Constraints = append(p.Constraints, "fresh") },
		`constraint "pin" cannot be left out`:             func(p *Policy) { p.Constraints = []string{"running", "excluded"} },
		`there is no planner "best"`:                      func(p *Policy) { p.Planner = "best" },
		`there is no weigher "luck"`:                      func(p *Policy) { p.Weighers = []Factor{{"luck", 1}} },
		`weigher "system-keys" is there twice`:            func(p *Policy) { p.Weighers = append(p.Weighers, p.Weighers...) },
		`the factor of weigher "system-keys" is NaN`:      func(p *Policy) { p.Weighers[0].Factor = math.NaN() },
		`there is no selector "raw"`:                      func(p *Policy) { p.Selector = "raw" },
		`there is no gate ""`:                             func(p *Policy) { p.Gate = Gate{} },
		`gate: 0 steps, want 1 to 1000`:                   func(p *Policy) { p.Gate = Gate{Kind: GateBands} },
		`gate: initial -20 and final -10`:                 func(p *Policy) { p.Gate = Bands(); p.Gate.Initial = -20 },
		`gate: initial +Inf and final -10`:                func(p *Policy) { p.Gate = Bands(); p.Gate.Initial = math.Inf(1) },
		`key "#RAM" is there twice`:                       func(p *Policy) { p.SystemKeys = append(p.SystemKeys, p.SystemKeys[0]) },
		`key "#RAM" has value 1e+300 and weight 40, want`: func(p *Policy) { p.SystemKeys[0].Value = 1e300 },
		`key "#RAM" has value 0 and weight NaN, want fi`:  func(p *Policy) { p.SystemKeys[0].Weight = math.NaN() },
	} {
		p := Affinity()
		change(&p)
		err := p.Validate()
		if !errors.Is(err, ErrInvalidPolicy) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
			continue
		}
		s := parseScenario(t, "node node1 memory=16G cpus=4 available=15G load=0\nstart new memory=1G vcpus=1")
		if d := Place(s.view(), s.asked[0].request, p, 1); d.Outcome != Refused || d.Reason != err.Error() {
			t.Errorf("placed all the same: %s", d.Reason)
		}
	}
	if err := Affinity().Validate(); err != nil {
		t.Errorf("the built-in policy: %v", err)
	}
}
