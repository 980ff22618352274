package placement

import (
	"cmp"
	"slices"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
)

// foremost are the nodes of the first candidates in the order of all, at most so many. Most decisions find them in one pass over the
// scores that have decided already, which keeps nothing of the nodes that are behind.
func (k keeper) foremost(most int) []int {
	var nodes []int
	if k.tiered() || len(k.wanting.By) > 0 || len(k.scorers) > 1 || k.choice.Node < 0 {
		for _, one := range selector.Best(slices.Values(k.standings()), most, func(a, b candidate) int { return compareCandidates(&a, &b) }) {
			nodes = append(nodes, one.node)
		}
		return nodes
	}
	for _, one := range selector.Best(k.scored, most, k.compareScored) {
		nodes = append(nodes, int(one.at))
	}
	return nodes
}

// scored are the candidates of a decision that found a node, with what decides the place of each unless two are equal in it.
func (k keeper) scored(yield func(sorted) bool) {
	thresholds := k.rounds()
	for _, node := range k.candidates {
		one := sorted{score: k.customer[node], at: node}
		if thresholds != nil {
			one.group = uint64(policies.Round(thresholds, k.system[node]))
		}
		if thresholds != nil && one.group == 0 {
			one.group, one.score = shutOut, k.system[node]
		}
		if !yield(one) {
			return
		}
	}
}

// compareScored is compareCandidates of those.
func (k keeper) compareScored(a, b sorted) int {
	if ahead := cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.score, a.score)); ahead != 0 {
		return ahead
	}
	contends := func(one sorted) contender {
		node := int(one.at)
		return contender{
			node: node, score: k.customer[node], stays: k.input.Columns.IDs[node] == k.input.Current,
			draw: selector.Draw(k.seed, k.input.Columns.Lots[node]),
		}
	}
	x, y := contends(a), contends(b)
	if x.beats(&y) {
		return -1
	}
	return 1
}
