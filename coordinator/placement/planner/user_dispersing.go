package planner

import "berth/coordinator/placement/rule"

// userDispersing is CloudStack's planner of the name: what has few VMs of the account comes first. The weight of dispersion
// says how much that counts against the used capacity. Of an account without VMs, and of nobody's, capacity alone decides.
var userDispersing = Planner{
	Name: "user-dispersing",
	Doc: "Clusters, nodes and pools with the fewest VMs and volumes of the customer come first, so that it loses little " +
		"when one of them goes.",
	Accounts: true,
	Pools:    true,
	Order: func(places []Place, terms Terms) {
		arrange(places, terms.Pods, func(used float64, vms, total int) float64 {
			if !terms.Owned {
				return used
			}
			share := 0.0
			if total > 0 {
				share = float64(vms) / float64(total)
			}
			return used*(1-terms.Weight) + share*terms.Weight
		})
	},
	Tiers: func(in *rule.Input, candidates []int) [][]int {
		return tiersBy(candidates, func(node int) int { return in.Columns.AccountVMs[node] })
	},
	Tier: "no candidate has fewer",
}
