package constraint

import (
	"fmt"

	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// The causes of a refusal by fresh.
const (
	noInventory = "no_inventory"
	noDomains   = "no_domains"
	noTelemetry = "no_telemetry"
	stale       = "stale"
	noLoad      = "no_load"
)

var fresh = Constraint{
	Name: "fresh",
	Doc: "What is known of the node is whole and recent: an inventory with all domains, a load figure, and telemetry " +
		"that is at most three intervals old.",
	InRoom: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		known := in.Columns.Known[node]
		age, sampled := in.TelemetryAge(node)
		switch {
		case known&view.KnowsInventory == 0:
			return rule.Refuse(noInventory)
		case known&view.KnowsDomains == 0:
			return in.AsTold(node, rule.Refuse(noDomains))
		case !sampled:
			return rule.Refuse(noTelemetry)
		case age > in.Columns.OldestTelemetry():
			return rule.Refuse(stale).AtAge(age)
		case known&view.KnowsLoad == 0:
			return rule.Refuse(noLoad).AtAge(age)
		}
		return rule.Pass().AtAge(age)
	},
	Say: func(in *rule.Input, _ int, refusal rule.Verdict) string {
		switch refusal.Code {
		case noInventory:
			return "the node has sent no inventory yet"
		case noDomains:
			return "the node's domains could not be listed"
		case noTelemetry:
			return "the node has sent no telemetry yet"
		case noLoad:
			return "neither the load nor the busy share of its CPUs could be read"
		default:
			return fmt.Sprintf("telemetry is %s old, at most %s will do", seconds(refusal.Age), seconds(in.Columns.OldestTelemetry()))
		}
	},
}
