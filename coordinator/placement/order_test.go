package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/selector"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
	"berth/shared/units"
)

// byName gives each node the score that stands in the map.
func byName(name string, scores map[string]float64) weigher.Weigher {
	return weigher.Weigher{Name: name, Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
		return scores[in.Columns.Names[node]]
	}}
}

// chosen runs an engine over nodes that all pass, and explains.
func chosen(e *Engine, names ...string) (Decision, []candidate) {
	request := Request{Memory: units.MiB}
	choice := e.Choose(emptyNodes(names...), noon, &request, 3)
	var d Decision
	e.fill(&d, choice)
	ordered := e.order()
	w := wording{e, choice}
	d.Order, d.Gate, d.Selector, d.Nodes = w.orderText(ordered), w.gateText(), w.selectorText(), resultsOf(e, ordered)
	return d, ordered
}

func firstFit() planner.Planner {
	p, _ := planner.ByName("first-fit")
	return p
}

// Three weighers with factors 99, 1 and 2 as in oVirt: equal scores share a rank, and the next rank skips.
func TestSeveralWeighersCombineByRankTimesFactor(t *testing.T) {
	e := &Engine{compiled: compiled{
		policy:  policies.Policy{Gate: policies.Gate{Kind: policies.GateOff}, Selector: SelectRank},
		planner: firstFit(), selector: selector.All()[0],
		weighers: []weigher.Weigher{
			byName("preferred", map[string]float64{"a": 0, "b": 0, "c": 0, "d": 0}),
			byName("memory", map[string]float64{"a": 5, "b": 9, "c": 9, "d": 1}),
			byName("cpu", map[string]float64{"a": 8, "b": 2, "c": 1, "d": 4}),
		},
		factors: []float64{99, 1, 2},
	}}
	d, ordered := chosen(e, "a", "b", "c", "d")
	scores := make(map[string]float64)
	var order []string
	for _, c := range ordered {
		scores[e.input.Name(c.node)] = c.score
		order = append(order, e.input.Name(c.node))
	}
	// preferred: all share the best rank, 3. memory: b and c have 3, a has 1, d 0. cpu: a 3, d 2, b 1, c 0.
	want := map[string]float64{"a": 297 + 1 + 6, "b": 297 + 3 + 2, "c": 297 + 3 + 0, "d": 297 + 0 + 4}
	if diff := cmp.Diff(want, scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "d", "c"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	sum := 0.0
	for _, term := range d.Nodes[0].Terms {
		sum += term.Contribution
	}
	if sum != d.Nodes[0].Score || d.Selector != "rank of 3 weighers" || d.Margin != 2 {
		t.Errorf("terms add up to %v of %v, %s, margin %v", sum, d.Nodes[0].Score, d.Selector, d.Margin)
	}
	if d.Reason != "a scores 304 by rank, 2 more than b" {
		t.Errorf("reason: %s", d.Reason)
	}
}

// A later tier counts only when the gate lets nobody of the earlier ones in, whatever the scores.
func TestTiersComeBeforeBandsAndBandsBeforeScores(t *testing.T) {
	scores := map[string]float64{"a": -50, "b": 10, "c": 40, "d": 200, "e": 200}
	e := &Engine{compiled: compiled{
		policy: policies.Policy{Gate: policies.Default().Gate, Selector: SelectRank},
		planner: planner.Planner{Name: "in-turn", Tiers: func(_ *rule.Input, all []int) [][]int {
			return [][]int{all[:3], all[3:]}
		}},
		thresholds: policies.Thresholds(80, -10, 10),
		gated:      byName("system-keys", scores),
		weighers:   []weigher.Weigher{byName("customer", map[string]float64{"b": 100, "c": -100})},
		factors:    []float64{1},
	}}
	d, ordered := chosen(e, "a", "b", "c", "d", "e")
	var order []string
	for _, c := range ordered {
		order = append(order, fmt.Sprintf("%s tier %d round %d", e.input.Name(c.node), c.tier, c.band))
	}
	want := []string{"c tier 1 round 6", "b tier 1 round 9", "d tier 2 round 1", "e tier 2 round 1", "a tier 1 round 0"}
	if !slices.Equal(order, want) {
		want[2], want[3] = want[3], want[2] // d and e are drawn
		if !slices.Equal(order, want) {
			t.Errorf("order %v", order)
		}
	}
	explained := text(d, false)
	for _, part := range []string{
		"c alone has a system score above 30: 40, 30 more than b", "in-turn: 5 nodes in 2 tiers", "1 node above 30 in round 6",
		"raw score of customer", "refused by bands: system score -50 does not exceed -10",
	} {
		if !strings.Contains(explained+d.Reason, part) {
			t.Errorf("%q is not in\n%s", part, explained+d.Reason)
		}
	}
}

func TestWithoutWeighersTheDrawDecides(t *testing.T) {
	e := &Engine{compiled: compiled{
		policy: policies.Policy{Gate: policies.Gate{Kind: policies.GateOff}, Selector: SelectRank}, planner: firstFit(),
	}}
	d, _ := chosen(e, "a", "b")
	if d.Selector != "draw: no weigher" || d.Margin != 0 || !strings.HasSuffix(d.Reason, ", drawn") {
		t.Errorf("%s: %s", d.Selector, d.Reason)
	}
}

// One word runs through policies, explanations and metrics, so it has to be a word, and only one rule may have it.
func TestEveryRuleHasANameAndADoc(t *testing.T) {
	seen := make(map[string]bool)
	check := func(kind, name, doc string) {
		t.Helper()
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" || seen[kind+name] {
			t.Errorf("%s %q: not a word of its own", kind, name)
		}
		if !strings.HasSuffix(doc, ".") || strings.Contains(doc, "\n") {
			t.Errorf("%s %s: the doc %q is not a sentence", kind, name, doc)
		}
		seen[kind+name] = true
	}
	for _, one := range constraint.All() {
		check("constraint", one.Name, one.Doc)
	}
	for _, one := range weigher.All() {
		check("weigher", one.Name, one.Doc)
	}
	for _, one := range planner.All() {
		check("planner", one.Name, one.Doc)
	}
	for _, one := range selector.All() {
		check("selector", one.Name, one.Doc)
	}
}

// Filtering and weighing are what a decision does to every node of a cluster: neither may allocate.
func TestRulesAllocateNothing(t *testing.T) {
	s := parseScenario(t, `
node node1 memory=16G cpus=4 available=15G load=1
node node2 memory=16G cpus=4 available=1G load=1 telemetry=60s maintenance=x
vm a on=node2 memory=15G vcpus=2 shows=G:1
start new memory=4G vcpus=1 pin=node9 exclude=node1 home=node3 wants=G:1:5
`)
	e := newEngine(t, policies.Default())
	e.Choose(s.view().Columns(model.DefaultCluster), noon, &s.asked[0].request, 1)
	for node := range e.out {
		for _, c := range constraint.All() {
			if n := testing.AllocsPerRun(100, func() { c.Check(&e.input, node) }); n != 0 {
				t.Errorf("constraint %s allocates %v times", c.Name, n)
			}
		}
		for _, w := range weigher.All() {
			if n := testing.AllocsPerRun(100, func() { w.Weigh(&e.input, node, nil) }); n != 0 {
				t.Errorf("weigher %s allocates %v times", w.Name, n)
			}
		}
	}
}

func TestScoreCountsEveryInstanceAndOnlyPairs(t *testing.T) {
	wanted := []key.Weighted{{Name: "A", Value: 1, Weight: 50}, {Name: "B", Value: 1, Weight: 70}}
	present := []key.Value{{Name: "A", Value: 0.75}, {Name: "A", Value: 1}, {Name: "A", Value: 3}, {Name: "C", Value: 1}}
	if got := key.Score(wanted, present); got != 37.5+50 {
		t.Errorf("the score is %v, want 87.5", got)
	}
}

// What the scan of columns adds is proximity times weight, whatever the figures.
func TestAContributionIsProximityTimesWeight(t *testing.T) {
	for _, one := range [][3]float64{
		{1, 1, 100}, {0.25, 1, -50}, {0, 1, 7}, {-0.5, 0.25, 3}, {5, 1, 9}, {view.Unknown, 0, 40}, {1e9, 1e9, 1e9},
	} {
		present, wanted, weight := one[0], one[1], one[2]
		if got, want := key.Contribution(present, wanted, weight), key.Proximity(present, wanted)*weight; got != want {
			t.Errorf("%v: %v, want %v", one, got, want)
		}
	}
}
