package affinity

import "berth/coordinator/cluster"

// RuleOf is a rule as the published interface puts it in flags, each of which may be left out (oVirt, AffinityRule). Enabled
// set to false wins over positive and keeps enforcing. Where enabled is left out, a word about the rule enables it. What
// else is left out stays as the rule was; one that was disabled and is enabled without a word about positive is positive.
func RuleOf(was cluster.Rule, enabled, positive, enforcing *bool) cluster.Rule {
	rule := was
	if enforcing != nil {
		rule.Enforcing = *enforcing
	}
	switch {
	case enabled == nil && positive == nil && enforcing == nil:
	case enabled != nil && !*enabled:
		rule.Polarity = cluster.Disabled
	case positive != nil && !*positive:
		rule.Polarity = cluster.Negative
	case positive != nil || !rule.Enabled():
		rule.Polarity = cluster.Positive
	}
	return rule
}
