package placement

import (
	"cmp"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

// SelectRank combines several weighers by rank times factor.
const SelectRank = "rank"

// candidate is a node that passed all constraints, on its way through the later stages.
type candidate struct {
	node  int // index into the view
	tier  int // from 1
	band  int // round that let it in; 0 when the gate is off or let it in nowhere
	shut  bool
	score float64
	stays bool   // runs the VM now
	draw  uint64 // decides between equals
	parts []part // of the score, by weigher, when there are several
}

// part is what one of several weighers gave.
type part struct{ raw, contribution float64 }

// choose runs Order, Gate, Weigh and Select. The candidates come back best first, those that the gate shut out last.
func (e *engine) choose(in *rule.Input, nodes []*cluster.NodeView, admitted []int, seed uint64) []candidate {
	candidates := make([]candidate, 0, len(admitted))
	for tier, members := range e.planner.Tiers(in, nodes, admitted) {
		for _, node := range members {
			id := nodes[node].Node.ID
			one := candidate{node: node, tier: tier + 1, stays: in.Current == id, draw: draw(seed, id)}
			if e.thresholds != nil {
				one.band = round(e.thresholds, e.gated.Weigh(in, nodes[node], nil))
				one.shut = one.band == 0
			}
			candidates = append(candidates, one)
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return compareGroup(&a, &b) })
	for first := 0; first < len(candidates); {
		next := first + 1
		for next < len(candidates) && compareGroup(&candidates[first], &candidates[next]) == 0 {
			next++
		}
		group := candidates[first:next]
		e.score(in, nodes, group)
		slices.SortFunc(group, compareInGroup)
		first = next
	}
	return candidates
}

// compareGroup puts tiers and bands in order: only nodes of one tier and band compete by score.
func compareGroup(a, b *candidate) int {
	switch {
	case a.shut != b.shut && a.shut:
		return 1
	case a.shut != b.shut:
		return -1
	}
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.band, b.band))
}

// compareInGroup puts the better one first: by score, then the VM's own node, then by the draw.
func compareInGroup(a, b candidate) int {
	if byScore := cmp.Compare(b.score, a.score); byScore != 0 {
		return byScore
	}
	if a.stays != b.stays {
		if a.stays {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.draw, a.draw), cmp.Compare(a.node, b.node))
}

// score fills the group's scores in. One weigher: its raw score, which is FCO. Several: the sum over the weighers of
// factor times rank, where the best of n nodes has rank n-1, and equal scores share the rank that counts only those below
// them as beaten (oVirt's rank selector). Without any weigher all are equal.
func (e *engine) score(in *rule.Input, nodes []*cluster.NodeView, group []candidate) {
	if len(e.weighers) == 1 {
		for i := range group {
			group[i].score = e.weighers[0].Weigh(in, nodes[group[i].node], nil)
		}
		return
	}
	sorted := make([]float64, len(group))
	for w := range e.weighers {
		for i := range group {
			sorted[i] = e.weighers[w].Weigh(in, nodes[group[i].node], nil)
			group[i].parts = append(group[i].parts, part{raw: sorted[i]})
		}
		slices.Sort(sorted)
		for i := range group {
			one := &group[i].parts[w]
			one.contribution = e.factors[w] * float64(rank(sorted, one.raw))
			group[i].score += one.contribution
		}
	}
}

// rank is n-1 less the number of strictly better scores.
func rank(sorted []float64, score float64) int {
	better := len(sorted) - upper(sorted, score)
	return len(sorted) - 1 - better
}

// upper is how many of the sorted scores are not above this one.
func upper(sorted []float64, score float64) int {
	at, _ := slices.BinarySearchFunc(sorted, score, func(one, than float64) int {
		if one > than {
			return 1
		}
		return -1
	})
	return at
}

// draw gives a node its lot: highest wins between equals. It depends on nothing but the seed and the node's ID (rendezvous
// hashing: FNV-1a, finished as in SplitMix64), so neither the order of nodes nor a node that loses changes who wins.
func draw(seed uint64, node string) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(node) {
		hash = (hash ^ uint64(node[i])) * 1099511628211
	}
	hash ^= seed
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	return hash ^ hash>>31
}
