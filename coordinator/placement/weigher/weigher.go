// Package weigher has the soft rules of placement, one a file: each gives a node that passed the constraints a score.
//
// A new weigher is one file, one line in all.go and one golden test.
package weigher

import "berth/coordinator/placement/rule"

// Weigher is one soft rule. Nodes are given as indexes into the columns.
type Weigher struct {
	Name string // in policies, explanations and metrics
	Doc  string // one sentence for people

	// Weight tells that the score is a weight with its sign turned: tables show the weight, and the lowest is best (oVirt).
	Weight bool

	// Load tells that the weigher asks how loaded a node is. A balancer has answered that before it proposes a move, so it judges
	// its moves without the weigher.
	Load bool

	// Wish tells that it weighs soft rules of groups or preferred nodes, which count before all others where the policy says so.
	Wish bool

	// Keys tells that the score is a sum over keys, each of which is a term of its own.
	Keys bool

	// Silent tells that the weigher has nothing to say in a decision: all nodes are the same to it, and it is left out. Nil:
	// it always has.
	Silent func(in *rule.Input) bool

	// Weigh scores one node; higher is better. It is pure. If terms is not nil, what the score is made of is appended to
	// it; without, nothing is allocated.
	Weigh func(in *rule.Input, node int, terms *[]rule.Term) float64

	// Sweep is Weigh in its fast form, a column at a time: it adds the score of every node to what is zero before. Both
	// give the same to the last bit. It may be nil: then Weigh is asked for each node.
	Sweep func(in *rule.Input, scores []float64)

	// Maximum is the highest weight of a node, or the highest score where these are not weights: what percentages of a fixed
	// maximum are of. Nil: there is none.
	Maximum func(in *rule.Input, node int) float64
}

// Scores fills in the score of every node.
func (w *Weigher) Scores(in *rule.Input, scores []float64) {
	if w.Sweep != nil {
		clear(scores)
		w.Sweep(in, scores)
		return
	}
	for node := range scores {
		scores[node] = w.Weigh(in, node, nil)
	}
}
