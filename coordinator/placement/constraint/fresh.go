package constraint

import (
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
)

// The causes of a refusal by fresh.
const (
	noInventory = "no_inventory"
	noDomains   = "no_domains"
	noTelemetry = "no_telemetry"
	stale       = "stale"
	noLoad      = "no_load"
	oldest      = cluster.SuspectAfter
)

var fresh = Constraint{
	Name: "fresh",
	Doc: "What is known of the node is whole and recent: an inventory with all domains, a load figure, and telemetry " +
		"that is at most three intervals old.",
	Check: func(in *rule.Input, node *cluster.NodeView) rule.Verdict {
		facts := &node.Facts
		age, sampled := node.TelemetryAge(in.At)
		switch {
		case !facts.Inventory:
			return rule.Refuse(noInventory)
		case !facts.DomainsKnown:
			return rule.Refuse(noDomains).AtAge(in.At.Sub(facts.InventoryAt))
		case !sampled:
			return rule.Refuse(noTelemetry)
		case age > oldest:
			return rule.Refuse(stale).AtAge(age)
		}
		if _, known := key.LoadOf(facts); !known {
			return rule.Refuse(noLoad).AtAge(age)
		}
		return rule.Pass().AtAge(age)
	},
	Say: func(_ *rule.Input, _ *cluster.NodeView, refusal rule.Verdict) string {
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
			return fmt.Sprintf("telemetry is %s old, at most %s will do", seconds(refusal.Age), seconds(oldest))
		}
	},
}
