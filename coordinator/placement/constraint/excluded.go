package constraint

import (
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

var excluded = Constraint{
	Name:      "excluded",
	Doc:       "The node has not failed in this operation before.",
	Mandatory: true,
	Check: func(in *rule.Input, node *cluster.NodeView) rule.Verdict {
		if slices.Contains(in.Excluded, node.Node.ID) {
			return rule.Refuse("failed_before")
		}
		return rule.Pass()
	},
	Say: func(*rule.Input, *cluster.NodeView, rule.Verdict) string {
		return "the node has failed in this operation already"
	},
}
