// Package selector has the ways to combine several weighers, one a file. Each turns what one weigher gave the nodes that
// compete into a share that does not depend on the weigher's unit; the shares times their factors are added up.
//
// A new selector is one file, one line in all.go and one golden test.
package selector

import "slices"

// Selector is one way.
type Selector struct {
	Name string // in policies and explanations
	Doc  string // one sentence for people

	// Falling tells that the lowest sum of shares wins; otherwise the highest does.
	Falling bool
	// Bounded tells that every weigher has to have a maximum.
	Bounded bool
	// Share works out the share of each node. It is pure, and keeps nothing of what it is given.
	Share func(of *Given, shares []float64)
}

// Given is what one weigher gave the nodes that compete.
type Given struct {
	Scores  []float64 // higher is better
	Weight  bool      // the scores are weights with their signs turned
	Maximum []float64 // by node: of the weights, or of the scores where these are none; nil: it has none

	sorted []float64 // room for Share
}

// Sum is what the selector makes of one node's shares: the score by which it competes, higher is better.
func (s *Selector) Sum(shares, factors []float64) float64 {
	sum := 0.0
	for i, share := range shares {
		sum += s.Contribution(share, factors[i])
	}
	return sum
}

// Contribution is what one share adds to a node's score.
func (s *Selector) Contribution(share, factor float64) float64 {
	if s.Falling {
		return -factor * share
	}
	return factor * share
}

// weight is a node's weight, lower is better. A score that is none counts from above: from the highest that there is.
func (g *Given) weight(node int, highest float64) float64 {
	if g.Weight {
		return -g.Scores[node]
	}
	return max(highest-g.Scores[node], 0)
}

// highest is the highest score.
func (g *Given) highest() float64 {
	if len(g.Scores) == 0 {
		return 0
	}
	return slices.Max(g.Scores)
}
