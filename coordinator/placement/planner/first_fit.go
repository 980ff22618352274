package planner

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

var firstFit = Planner{
	Name: "first-fit",
	Doc:  "All candidates stand in one tier: the weighers alone decide.",
	Tiers: func(_ *rule.Input, _ []*cluster.NodeView, candidates []int) [][]int {
		return [][]int{candidates}
	},
}
