package placement

import (
	"cmp"
	"slices"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
)

// SelectRank combines several weighers by rank times factor.
const SelectRank = "rank"

// candidate is a node that passed all constraints, with what the later stages make of it.
type candidate struct {
	contender
	tier   int // from 1
	wish   int // from 1: those of a tier that break the least of the soft rules; 0: Prefer was not asked
	band   int // round that let it in; 0 when the gate is off or let it in at none
	shut   bool
	system float64
	parts  []part // of the score, by weigher, when there are several
}

// part is what one of several weighers gave.
type part struct{ raw, share, contribution float64 }

// order runs Order, Gate, Weigh and Select on every candidate that filter left: best first, those that the gate refused last.
// Explanations show it. The function choose finds the same best node faster.
func (e *Engine) order() []candidate {
	candidates := e.standings()
	order := make([]sorted, len(candidates)) // sorted instead: a candidate is large to move about, and to look up
	for i := range candidates {
		order[i] = sortedOf(&candidates[i], i)
	}
	slices.SortFunc(order, func(a, b sorted) int {
		if a.group == b.group && a.score == b.score {
			return compareCandidates(&candidates[a.at], &candidates[b.at])
		}
		if a.group < b.group || a.group == b.group && a.score > b.score {
			return -1
		}
		return 1
	})
	ordered := make([]candidate, len(candidates))
	for i := range order {
		ordered[i] = candidates[order[i].at]
	}
	return ordered
}

// shutOut marks the group of those that the gate refused, which come last.
const shutOut = 1 << 63

// sorted is what usually decides a candidate's place: what compareGroup compares, and the score inside the group.
type sorted struct {
	group uint64
	score float64
	at    int32
}

func sortedOf(one *candidate, at int) sorted {
	s := sorted{group: uint64(one.tier)<<42 | uint64(one.wish)<<21 | uint64(one.band), score: one.score, at: int32(at)}
	if one.shut {
		s.group, s.score = s.group|shutOut, one.system
	}
	return s
}

// standings is the candidates with their tiers, rounds and scores, in any order.
func (e *Engine) standings() []candidate {
	admitted := make([]int, 0, len(e.candidates))
	for _, node := range e.candidates {
		admitted = append(admitted, int(node))
	}
	tiers := [][]int{admitted}
	if e.tiered() {
		tiers = e.tiers(admitted)
	}
	thresholds := e.rounds()
	if thresholds == nil {
		clear(e.system)
	} else {
		e.gated.Scores(&e.input, e.system)
	}
	candidates := make([]candidate, 0, len(admitted))
	for tier, members := range tiers {
		for _, node := range members {
			one := candidate{tier: tier + 1, system: e.system[node]}
			one.node, one.stays = node, e.input.Columns.IDs[node] == e.input.Current
			one.draw = selector.Draw(e.seed, e.input.Columns.Lots[node])
			if thresholds != nil {
				one.band = policies.Round(thresholds, one.system)
				one.shut = one.band == 0
			}
			candidates = append(candidates, one)
		}
	}
	e.rankWishes(candidates)
	e.score(candidates)
	return candidates
}

// compareCandidates sorts the better one first. No two are equal.
func compareCandidates(a, b *candidate) int {
	if group := compareGroup(a, b); group != 0 {
		return group
	}
	if a.shut && a.system != b.system { // the one closest to the threshold comes first
		return cmp.Compare(b.system, a.system)
	}
	if a.beats(&b.contender) {
		return -1
	}
	return 1
}

// compareGroup sorts by tier, what is broken, and band: only nodes that are equal in these compete by score.
func compareGroup(a, b *candidate) int {
	switch {
	case a.shut != b.shut && a.shut:
		return 1
	case a.shut != b.shut:
		return -1
	}
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.wish, b.wish), cmp.Compare(a.band, b.band))
}

// score computes the scores. One weigher: its raw score, which is FCO. Several: what the selector makes of them among the
// nodes of one tier and band. Without any weigher all nodes are equal.
func (e *Engine) score(candidates []candidate) {
	switch len(e.scorers) {
	case 0:
		clear(e.customer)
	case 1:
		e.scorers[0].Scores(&e.input, e.customer)
		for i := range candidates {
			candidates[i].score = e.customer[candidates[i].node]
		}
	default:
		e.combineGroups(candidates)
	}
}

// combineGroups combines the weighers in each tier and band separately.
func (e *Engine) combineGroups(candidates []candidate) {
	slices.SortStableFunc(candidates, func(a, b candidate) int { return compareGroup(&a, &b) })
	parts := make([]part, len(candidates)*len(e.scorers))
	for first := 0; first < len(candidates); {
		next := first + 1
		for next < len(candidates) && compareGroup(&candidates[first], &candidates[next]) == 0 {
			next++
		}
		group := candidates[first:next]
		nodes := make([]int32, len(group))
		for i := range group {
			nodes[i] = int32(group[i].node)
		}
		e.combine(nodes)
		for i := range group {
			one := &group[i]
			one.score, one.parts, parts = e.customer[one.node], parts[:len(e.scorers):len(e.scorers)], parts[len(e.scorers):]
			for s := range e.scorers {
				share := e.several.shares[s][one.node]
				one.parts[s] = part{
					raw: e.several.raw[s][one.node], share: share, contribution: e.selector.Contribution(share, e.weights[s]),
				}
			}
		}
		first = next
	}
}

// choiceOf is the choice that follows from the order of all candidates.
func (e *Engine) choiceOf(ordered []candidate) Choice {
	choice := Choice{Node: -1, RunnerUp: -1, Candidates: len(ordered)}
	switch {
	case len(ordered) == 0:
		choice.FailedPhase = PhaseConstraint
		return choice
	case ordered[0].shut:
		choice.FailedPhase, choice.System = PhaseSystem, ordered[0].system
		return choice
	}
	best := &ordered[0]
	choice.Node, choice.Round, choice.Stays = best.node, best.band, best.stays
	choice.System, choice.Customer = best.system, best.score
	if best.band > 0 {
		choice.Threshold = e.thresholds[best.band-1]
	}
	for i := range ordered {
		if best.wish > 0 && ordered[i].tier == best.tier && ordered[i].wish == best.wish {
			choice.Kept++
		}
		if compareGroup(best, &ordered[i]) != 0 {
			continue
		}
		choice.Band++
		if ordered[i].score == best.score {
			choice.Ties++
		}
	}
	if len(ordered) > 1 && !ordered[1].shut {
		next := &ordered[1]
		choice.RunnerUp, choice.Margin = next.node, best.score-next.score
		switch {
		case next.tier != best.tier || next.wish != best.wish: // no score was compared
			choice.Margin, choice.Behind = 0, true
		case next.band != best.band:
			choice.Margin = best.system - next.system
		}
	}
	return choice
}

// first moves the chosen node to the front where it is not the best one (IfBetter).
func first(ordered []candidate, node int) {
	at := slices.IndexFunc(ordered, func(c candidate) bool { return c.node == node })
	if at > 0 {
		chosen := ordered[at]
		copy(ordered[1:at+1], ordered[:at])
		ordered[0] = chosen
	}
}
