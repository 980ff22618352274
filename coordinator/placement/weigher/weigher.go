// Package weigher has the soft rules of placement, one a file: each gives a node that passed the constraints a score.
//
// A new weigher is one file, one line in all.go and one golden test.
package weigher

import "berth/coordinator/placement/rule"

// Weigher is one soft rule. Nodes are given as indexes into the columns.
type Weigher struct {
	Name string // in policies, explanations and metrics
	Doc  string // one sentence for people

	// Weigh scores one node; higher is better. It is pure. If terms is not nil, what the score is made of is appended to
	// it; without, nothing is allocated.
	Weigh func(in *rule.Input, node int, terms *[]rule.Term) float64

	// Sweep is Weigh in its fast form, a column at a time: it adds the score of every node to what is zero before. Both
	// give the same to the last bit. It may be nil: then Weigh is asked for each node.
	Sweep func(in *rule.Input, scores []float64)
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
