package constraint

import (
	"slices"

	"berth/coordinator/placement/rule"
)

// among keeps a move to the targets that whoever proposed it found better, and to where the VM is.
var among = Constraint{
	Name:      "among",
	Doc:       "The node is one of those that the move may go to, where these are given, or the one that the VM is on.",
	Mandatory: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		id := in.Columns.IDs[node]
		if len(in.Among) == 0 || id == in.Current || slices.Contains(in.Among, id) {
			return rule.Pass()
		}
		return rule.Refuse("no_target")
	},
	Say: func(*rule.Input, int, rule.Verdict) string {
		return "the node is none of those that the move may go to"
	},
	Sweep: func(in *rule.Input, out []bool) {
		if len(in.Among) == 0 {
			return
		}
		for node, id := range in.Columns.IDs {
			out[node] = out[node] || id != in.Current && !slices.Contains(in.Among, id)
		}
	},
}
