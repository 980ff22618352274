package weigher

import (
	"slices"

	"berth/coordinator/placement/rule"
)

// notPreferred is what a node weighs that the VM does not prefer (oVirt's PreferredHosts).
const notPreferred = 10_000

// preferredNodes says nothing of a VM that runs: it is where it is, and preference alone moves nothing.
var preferredNodes = Weigher{
	Name:   "preferred-nodes",
	Doc:    "Whether the node is one of those that the VM had better start on.",
	Weight: true,
	Wish:   true,
	Silent: noPreference,
	Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
		if noPreference(in) || slices.Contains(in.Preferred, in.Columns.IDs[node]) {
			return 0
		}
		return -notPreferred
	},
	Maximum: func(*rule.Input, int) float64 { return notPreferred },
}

func noPreference(in *rule.Input) bool { return len(in.Preferred) == 0 || in.Current != "" }
