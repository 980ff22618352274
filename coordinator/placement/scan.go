package placement

import (
	"math"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
)

// scan finds the best node and the next one, by the scores that there are if these are known.
func (e *Engine) scan(known bool) Choice {
	choice := Choice{Node: -1, RunnerUp: -1, Candidates: len(e.candidates)}
	if choice.Candidates == 0 {
		choice.FailedPhase = PhaseConstraint
		return choice
	}
	thresholds := e.rounds()
	band := e.candidates
	if thresholds == nil {
		clear(e.system)
	} else {
		if !known {
			e.gated.Scores(&e.input, e.system)
		}
		// Mostly a node enters at the first round: then the highest score need not be looked for.
		choice.Round = 1
		if band = e.above(thresholds[0]); len(band) == 0 {
			choice.System = e.highest(-1)
			if choice.Round = policies.Round(thresholds, choice.System); choice.Round == 0 {
				choice.FailedPhase = PhaseSystem
				return choice
			}
			band = e.above(thresholds[choice.Round-1])
		}
		choice.Threshold = thresholds[choice.Round-1]
	}
	switch {
	case known:
	case len(e.scorers) == 0:
		clear(e.customer)
	case len(e.scorers) == 1:
		e.scorers[0].Scores(&e.input, e.customer)
	default:
		e.combine(band)
	}
	best, next, ties := e.bestOf(band, -1)
	choice.Node, choice.Band, choice.Ties = best.node, len(band), ties
	choice.System, choice.Customer, choice.Stays = e.system[best.node], best.score, best.stays
	if next.node >= 0 {
		choice.RunnerUp, choice.Margin = next.node, best.score-next.score
	} else if thresholds != nil && choice.Candidates > 1 {
		choice.RunnerUp, choice.Margin = e.behind(best.node, thresholds)
	}
	return choice
}

// highest is the highest system score of the candidates but one.
func (e *Engine) highest(except int) float64 {
	highest := math.Inf(-1)
	for _, node := range e.candidates {
		if score := e.system[node]; score > highest && int(node) != except {
			highest = score
		}
	}
	return highest
}

// above are the candidates with a system score above the threshold. The next call overwrites them.
func (e *Engine) above(threshold float64) []int32 {
	band, system, n := e.band[:len(e.candidates)], e.system, 0
	for _, node := range e.candidates {
		band[n] = node
		n += oneIf(system[node] > threshold)
	}
	return band[:n]
}

// oneIf is compiled without a branch.
func oneIf(is bool) int {
	one := 0
	if is {
		one = 1
	}
	return one
}

// behind is the best node of the rounds after the winner's, which is alone in its own, and how far behind it is.
func (e *Engine) behind(winner int, thresholds []float64) (node int, margin float64) {
	later := policies.Round(thresholds, e.highest(winner))
	if later == 0 {
		return -1, 0
	}
	if len(e.scorers) > 1 {
		e.combine(e.entered(later))
	}
	next, _, _ := e.bestOf(e.above(thresholds[later-1]), winner)
	return next.node, e.system[winner] - e.system[next.node]
}

// contender is a node that is compared with others of its band.
type contender struct {
	node  int
	score float64
	stays bool
	draw  uint64
}

// beats puts the better one first: by score, then the VM's own node, then by the draw, and if even that is equal, by ID.
func (a *contender) beats(b *contender) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.stays != b.stays:
		return a.stays
	case a.draw != b.draw:
		return a.draw > b.draw
	default:
		return a.node < b.node
	}
}

// bestOf finds the best two nodes of a band, leaving one out, and counts those that score like the best.
func (e *Engine) bestOf(band []int32, except int) (best, next contender, ties int) {
	best = contender{node: -1, score: math.Inf(-1)}
	next = best
	current := -1
	if at, found := e.input.Columns.Index(e.input.Current); found {
		current = at
	}
	customer, lots := e.customer, e.input.Columns.Lots
	for _, at := range band {
		node := int(at)
		score := customer[node]
		if score < next.score || node == except {
			continue
		}
		if score == best.score {
			ties++
		}
		lot := selector.Draw(e.seed, lots[node])
		if score == next.score && lot < next.draw && node != current {
			continue
		}
		one := contender{node: node, score: score, stays: node == current, draw: lot}
		switch {
		case best.node < 0 || one.beats(&best):
			if score != best.score {
				ties = 1
			}
			best, next = one, best
		case next.node < 0 || one.beats(&next):
			next = one
		}
	}
	return best, next, ties
}
