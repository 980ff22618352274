package affinity

import "berth/coordinator/model"

// RuleOf reads a rule as the published interface writes it, in flags that may be left out (oVirt, AffinityRule). Enabled set
// to false wins over positive, and enforcing is kept. Without enabled, any other flag enables the rule. Flags that are left
// out keep their value; a rule that was disabled and gets no value for positive becomes positive.
func RuleOf(was model.Rule, enabled, positive, enforcing *bool) model.Rule {
	rule := was
	if enforcing != nil {
		rule.Enforcing = *enforcing
	}
	switch {
	case enabled == nil && positive == nil && enforcing == nil:
	case enabled != nil && !*enabled:
		rule.Polarity = model.Disabled
	case positive != nil && !*positive:
		rule.Polarity = model.Negative
	case positive != nil || !rule.Enabled():
		rule.Polarity = model.Positive
	}
	return rule
}
