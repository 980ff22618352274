package constraint

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

const inMaintenance = "maintenance"

var running = Constraint{
	Name:      "running",
	Doc:       "The node is up: its agent is heard, libvirt answers, and it is not in maintenance.",
	Mandatory: true,
	Check: func(_ *rule.Input, node *cluster.NodeView) rule.Verdict {
		switch {
		case node.Node.Maintenance:
			return rule.Refuse(inMaintenance)
		case node.Facts.Liveness == cluster.Up:
			return rule.Pass()
		case node.Facts.Liveness == "":
			return rule.Refuse(unknown)
		default:
			return rule.Refuse(string(node.Facts.Liveness))
		}
	},
	Say: func(_ *rule.Input, node *cluster.NodeView, refusal rule.Verdict) string {
		text, reason := "the node is "+refusal.Code, node.Facts.LivenessReason
		switch refusal.Code {
		case inMaintenance:
			text, reason = "the node is in maintenance", node.Node.MaintenanceReason
		case unknown:
			return "nothing has been heard of the node"
		}
		if reason == "" {
			return text
		}
		return text + ": " + reason
	},
	Relax: func(_ *rule.Input, node *cluster.NodeView, refusal rule.Verdict) (rule.Relaxation, bool) {
		if refusal.Code != inMaintenance || node.Facts.Liveness != cluster.Up {
			return rule.Relaxation{}, false
		}
		return rule.Relaxation{Text: "out of maintenance, " + nameOf(node) + " would take it"}, true
	},
}
