// Package weigher has the soft rules of placement, one a file: each gives a node that passed the constraints a score.
//
// A new weigher is one file, one line in all.go and one golden test.
package weigher

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

// Weigher is one soft rule.
type Weigher struct {
	Name string // in policies, explanations and metrics
	Doc  string // one sentence for people

	// Weigh scores one node; higher is better. It is pure. If terms is not nil, what the score is made of is appended to
	// it; without, nothing is allocated.
	Weigh func(in *rule.Input, node *cluster.NodeView, terms *[]rule.Term) float64
}
