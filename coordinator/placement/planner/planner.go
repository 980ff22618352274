// Package planner has the ways to put candidates in order before they are weighed: each cuts them into tiers, and a tier is
// looked at only when the ones before it have no node.
//
// A new planner is one file, one line in all.go and one golden test.
package planner

import "berth/coordinator/placement/rule"

// Planner cuts candidates into tiers.
type Planner struct {
	Name string // in policies and explanations
	Doc  string // one sentence for people

	// Tiers takes the candidates as indexes into the columns, in order, and returns each of them in one tier, the first tier
	// first. It is pure. Nil: all stand in one tier.
	Tiers func(in *rule.Input, candidates []int) [][]int
}
