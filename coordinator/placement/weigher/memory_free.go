package weigher

import (
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
	"berth/shared/units"
)

// memoryFree is how much memory a node has left, in MiB: the smaller of what it may still promise and what is really free.
var memoryFree = Weigher{
	Name: "memory-free",
	Doc:  "How much memory the node has left, in MiB: the smaller of what is left to promise and what is physically free.",
	Load: true,
	Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
		left := in.Columns.PromisedFree(node)
		if in.Columns.Known[node]&view.KnowsFree != 0 {
			left = min(left, in.Columns.Free.At(node))
		}
		return float64(max(left, 0) / units.MiB)
	},
	Maximum: func(in *rule.Input, node int) float64 { return float64(in.Columns.Memory[node] / units.MiB) },
}
