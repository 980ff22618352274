package placement

import (
	"slices"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
)

// foremost are the nodes of the first candidates in the order of all, at most so many. Most decisions find them in one pass over the
// scores that have decided already, which keeps nothing of the nodes that are behind.
func (k keeper) foremost(most int) []int {
	if k.inOnePass() && k.choice.Node >= 0 {
		return k.first(most, k.rounds())
	}
	var nodes []int
	for _, one := range selector.Best(slices.Values(k.standings()), most, func(a, b candidate) int { return compareCandidates(&a, &b) }) {
		nodes = append(nodes, one.node)
	}
	return nodes
}

// inOnePass tells whether one pass over the nodes decides: there is one tier, Prefer is not asked, and no scores are combined.
func (k keeper) inOnePass() bool { return !k.tiered() && len(k.wanting.By) == 0 && len(k.scorers) <= 1 }

// standing is what decides where a candidate stands: its group, the score by which groups of refused nodes are ordered, and the contender.
type standing struct {
	group uint64
	shut  float64 // system score of a candidate that the gate refused
	contender
}

func (a *standing) before(b *standing) bool {
	switch {
	case a.group != b.group:
		return a.group < b.group
	case a.shut != b.shut:
		return a.shut > b.shut
	default:
		return a.beats(&b.contender)
	}
}

// first are the first candidates of a decision by one pass, by what the gate with these thresholds makes of them; nil: by the score alone.
// A node that comes after all that are kept, as most do, costs one comparison.
func (k keeper) first(most int, thresholds []float64) []int {
	if most <= 0 {
		return nil
	}
	kept := make([]standing, 0, most+1)
	current, runs := k.input.Columns.Index(k.input.Current)
	for _, at := range k.candidates {
		node := int(at)
		one := standing{contender: contender{
			node: node, score: k.customer[node], stays: runs && node == current, draw: selector.Draw(k.seed, k.input.Columns.Lots[node]),
		}}
		if thresholds != nil && k.system[node] <= thresholds[0] {
			if one.group = uint64(policies.Round(thresholds, k.system[node])); one.group == 0 {
				one.group, one.shut = shutOut, k.system[node]
			}
		}
		place := len(kept)
		for place > 0 && one.before(&kept[place-1]) {
			place--
		}
		if place < most {
			kept = slices.Insert(kept, place, one)[:min(most, len(kept)+1)]
		}
	}
	nodes := make([]int, len(kept))
	for i := range kept {
		nodes[i] = kept[i].node
	}
	return nodes
}

// winsWithout is the node that wins without a system key, if that is found without another pass: the key changes which candidates the
// first round lets in, and nothing else. So the first that it lets in wins, of those that come first by all that counts in a round.
func (k keeper) winsWithout(systemKey int, first []int) (node int, found bool) {
	in := k.input
	in.SystemKeys = without(in.SystemKeys, systemKey)
	for _, node := range first {
		if k.gated.Weigh(&in, node, nil) > k.thresholds[0] {
			return node, true
		}
	}
	return -1, false
}
