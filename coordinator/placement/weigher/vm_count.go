package weigher

import "berth/coordinator/placement/rule"

// vmCount weighs a node by its occupied slots (oVirt, "Even VM distribution based on VM count per host"): its VMs, those on
// their way included, and on a node that carries the site's management as many more as it is to be short of others.
var vmCount = Weigher{
	Name:   "vm-count",
	Doc:    "How many VMs are on the node or on their way to it, the grace of a node with the site's management added.",
	Weight: true,
	Load:   true,
	Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
		if !in.Columns.Count.Given() {
			return 0
		}
		slots := in.Columns.Count.At(node)
		if in.Columns.Management != nil && in.Columns.Management[node] {
			slots += in.ManagerGrace
		}
		return 0 - float64(max(slots, 0))
	},
}
