package constraint

import (
	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

const inMaintenance = "maintenance"

// standings are the codes of the ways not to stand well.
var standings = map[view.Standing]string{
	view.StandsUnheard:           unknown,
	view.StandsInMaintenance:     inMaintenance,
	view.StandsDownInMaintenance: inMaintenance,
	view.StandsSuspect:           string(model.Suspect),
	view.StandsUnreachable:       string(model.Unreachable),
	view.StandsDegraded:          string(model.Degraded),
	view.StandsFenced:            "fenced",
}

var running = Constraint{
	Name:      "running",
	Doc:       "The node is up: its agent is heard, libvirt answers, and it is not in maintenance.",
	Mandatory: true,
	InRoom:    true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		standing := in.Columns.Standing[node]
		if standing == view.Stands {
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
		if in.Columns.Standing[node] != view.StandsInMaintenance {
			return rule.Relaxation{}, false
		}
		return rule.Relaxation{
			Text:  "out of maintenance, " + in.Name(node) + " would take it",
			Apply: func(figures *view.Figures, _ *rule.Input) { figures.Standing[0] = view.Stands },
		}, true
	},
}
