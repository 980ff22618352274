package constraint

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

var pin = Constraint{
	Name:      "pin",
	Doc:       "The caller asked for this node, or for none.",
	Mandatory: true,
	Check: func(in *rule.Input, node *cluster.NodeView) rule.Verdict {
		if in.Pinned == "" || in.Pinned == node.Node.ID {
			return rule.Pass()
		}
		return rule.Refuse("not_asked_for")
	},
	Say: func(in *rule.Input, _ *cluster.NodeView, _ rule.Verdict) string {
		return in.PinnedName + " was asked for"
	},
	Relax: func(in *rule.Input, node *cluster.NodeView, _ rule.Verdict) (rule.Relaxation, bool) {
		return rule.Relaxation{Text: "without asking for " + in.PinnedName + ", " + nameOf(node) + " would take it"}, true
	},
}
