package planner

import (
	"cmp"
	"slices"

	"berth/coordinator/placement/rule"
)

// userConcentrated is CloudStack's UserConcentratedPod planner: the pods with most VMs of the account come first, stopped ones
// counted, and their clusters by used capacity. Those of pods without any come last, all by used capacity. It knows no
// level and no weight.
var userConcentrated = Planner{
	Name: "user-concentrated",
	Doc: "Clusters of the pods with most VMs of the customer come first, and of a cluster the nodes with most of them, so " +
		"that its VMs stay near each other.",
	Accounts: true,
	Kept:     true,
	Together: true,
	Order: func(places []Place, terms Terms) {
		for i := range places {
			places[i].Weight, places[i].PodWeight = places[i].Used, 0
			if terms.Owned {
				places[i].PodWeight = float64(-places[i].PodVMs)
			}
		}
		slices.SortStableFunc(places, func(a, b Place) int {
			if a.PodWeight == 0 && b.PodWeight == 0 {
				return 0
			}
			return cmp.Or(comparePods(&a, &b), cmp.Compare(a.Weight, b.Weight))
		})
	},
	Tiers: func(in *rule.Input, candidates []int) [][]int {
		return tiersBy(candidates, func(node int) int { return -in.Columns.AccountVMs[node] })
	},
	Tier: "no candidate has more",
}
