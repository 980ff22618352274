package conformance

import (
	"maps"
	"slices"

	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
)

// decided is what the engine made of one request, with many seeds.
type decided struct {
	choice   placement.Choice
	decision placement.Decision // explained
	winners  []string           // every node that won with some seed
	band     []string           // nodes that entered at the winner's round
	system   map[string]float64 // scores of the nodes that passed the constraints
	customer map[string]float64
}

// seedsANode is how often a tie is drawn for each node that may win it.
const seedsANode = 40

// decideAll makes a decision in both forms that the engine has, and with enough seeds that every node that can win a tie
// does.
func decideAll(c *checker, view *view.View, request placement.Request, policy policies.Policy) decided {
	c.Helper()
	engine, err := placement.NewEngine(policy)
	c.must(err)
	reduced := view
	if request.Current != "" {
		reduced = view.Without(request.VM, request.Current)
	}
	columns := reduced.Columns(request.Cluster)
	winners := map[string]bool{}
	d := decided{system: map[string]float64{}, customer: map[string]float64{}}
	for seed := range uint64(seedsANode * max(1, columns.Len())) {
		d.choice = engine.Choose(columns, view.At, &request, seed)
		d.decision = placement.Place(view, request, policy, seed)
		chosen := ""
		if d.choice.Node >= 0 {
			chosen = columns.IDs[d.choice.Node]
			winners[chosen] = true
		}
		if d.decision.Winner != chosen || d.decision.Round != d.choice.Round || d.decision.FailedPhase != d.choice.FailedPhase {
			c.Fatalf("seed %d: the decision is %+v, the choice %+v", seed, d.decision, d.choice)
		}
	}
	d.winners = slices.Sorted(maps.Keys(winners))
	d.decision = placement.Explain(d.decision)
	for _, node := range d.decision.Nodes {
		if node.Tier == 0 { // refused by a constraint; what the rounds shut out has scores
			continue
		}
		d.system[node.Node], d.customer[node.Node] = node.SystemScore, node.CustomerScore
		if d.choice.Node >= 0 && node.Band == d.choice.Round && node.Wish == d.decision.Nodes[0].Wish {
			d.band = append(d.band, node.Node)
		}
	}
	return d
}

// selected compares the choice with what is expected of it.
func (c *checker) selected(d decided, want selection) {
	c.Helper()
	c.tolerance = want.Tolerance.or(c.tolerance)
	c.round(d, want)
	if want.Band.given {
		c.sameSet("the band", d.band, want.Band.value)
		c.same("the size of the band", d.choice.Band, len(want.Band.value))
	}
	if want.Winners.given {
		c.won(d, want.Winners.value)
	}
	if want.Placed.given {
		var winners []string
		if !want.Placed.null {
			winners = []string{want.Placed.value}
		}
		c.won(d, winners)
	}
	if want.FailedPhase.given {
		c.same("the phase that failed", string(d.choice.FailedPhase), want.FailedPhase.value)
	}
}

func (c *checker) round(d decided, want selection) {
	c.Helper()
	if want.Round.given {
		c.same("the round", d.choice.Round, int(want.Round.value)) // null and none are both 0
	}
	if !want.Threshold.given {
		return
	}
	if c.same("whether a round has a node", d.choice.Round > 0, !want.Threshold.null); !want.Threshold.null {
		c.near("the threshold", d.choice.Threshold, want.Threshold.value)
	}
}

// won compares who wins with some seed. A VM that stays where it is wins all ties, so then only one of them does.
func (c *checker) won(d decided, want []string) {
	c.Helper()
	if !d.choice.Stays {
		c.sameSet("who can win", d.winners, want)
		return
	}
	c.checked++
	if len(d.winners) != 1 || !slices.Contains(want, d.winners[0]) {
		c.Errorf("%v won by staying, want one of %v", d.winners, want)
	}
}
