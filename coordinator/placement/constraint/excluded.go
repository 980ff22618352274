package constraint

import (
	"slices"

	"berth/coordinator/placement/rule"
)

var excluded = Constraint{
	Name:      "excluded",
	Doc:       "The node has not failed in this operation before.",
	Mandatory: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if slices.Contains(in.Excluded, in.Columns.IDs[node]) {
			return rule.Refuse("failed_before")
		}
		return rule.Pass()
	},
	Say: func(*rule.Input, int, rule.Verdict) string { return "the node has failed in this operation already" },
	Sweep: func(in *rule.Input, out []bool) {
		for _, id := range in.Excluded {
			if node, found := in.Columns.Index(id); found {
				out[node] = true
			}
		}
	},
}
