package constraint

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

const inMaintenance = "maintenance"

// standings are the codes of the ways not to stand well.
var standings = map[cluster.Standing]string{
	cluster.StandsUnheard:           unknown,
	cluster.StandsInMaintenance:     inMaintenance,
	cluster.StandsDownInMaintenance: inMaintenance,
	cluster.StandsSuspect:           string(cluster.Suspect),
	cluster.StandsUnreachable:       string(cluster.Unreachable),
	cluster.StandsDegraded:          string(cluster.Degraded),
	cluster.StandsFenced:            "fenced",
}

var running = Constraint{
	Name:      "running",
	Doc:       "The node is up: its agent is heard, libvirt answers, and it is not in maintenance.",
	Mandatory: true,
	InRoom:    true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		standing := in.Columns.Standing[node]
		if standing == cluster.Stands {
			return rule.Pass()
		}
		if code, known := standings[standing]; known {
			return rule.Refuse(code)
		}
		return rule.Refuse(unknown)
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		text := "the node is " + refusal.Code
		switch refusal.Code {
		case inMaintenance:
			text = "the node is in maintenance"
		case unknown:
			return "nothing has been heard of the node"
		}
		if reason := in.Columns.Reason(node); reason != "" {
			return text + ": " + reason
		}
		return text
	},
	Relax: func(in *rule.Input, node int, _ rule.Verdict) (rule.Relaxation, bool) {
		if in.Columns.Standing[node] != cluster.StandsInMaintenance {
			return rule.Relaxation{}, false
		}
		return rule.Relaxation{
			Text:  "out of maintenance, " + in.Name(node) + " would take it",
			Apply: func(figures *cluster.Figures, _ *rule.Input) { figures.Standing[0] = cluster.Stands },
		}, true
	},
}
