package schema

import (
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
	"berth/coordinator/placement/weigher"
)

// Setting and list names of policies.
const (
	SettingGate         = "gate"                   // bands or off
	SettingPlanner      = "planner"                // what orders the nodes before they are weighed
	SettingSelector     = "selector"               // how several weighers are combined
	SettingBalancer     = "balancer"               // or none
	SettingDrainIgnores = "drain_ignores_vm_rules" // true or false
	SettingDisperse     = "disperse_accounts"      // true or false

	SettingSoftRules       = "soft_rules"              // before-bands or within-bands
	SettingUnlessContended = "prefer_unless_contended" // true or false
	SettingContendedAbove  = "contended_above"         // percent

	ListConstraints = "constraints"
	ListWeighers    = "weighers"   // NAME=FACTOR
	ListParameters  = "parameters" // NAME=NUMBER, of the balancer
)

// PolicyForm is a scheduling policy: what a cluster switches on of the engine's rules, and how it evens itself out.
var PolicyForm = Form{
	Kind: model.KindPolicy, Plural: "policies",
	Doc: "a scheduling policy: how the clusters that link to it choose nodes and even VMs out",
	Settings: []Setting{
		{
			Name: SettingGate, Doc: "bands: the rounds of system keys leave the nodes that count as equal; or off",
			Default: string(policies.GateBands), Words: []string{string(policies.GateBands), string(policies.GateOff)},
		},
		{
			Name: SettingPlanner, Doc: "what orders nodes before they are weighed: " + AnyOf(Planners()), Default: "first-fit", Words: Planners(),
			aliases: plannerAliases,
		},
		{
			Name: SettingSelector, Doc: "how several weighers are combined: " + AnyOf(Selectors()), Default: placement.SelectRank,
			Words: Selectors(),
		},
		{Name: SettingBalancer, Doc: "what evens the cluster out: " + AnyOf(Balancers()), Default: balance.None, Words: Balancers()},
		{
			Name: SettingDrainIgnores, Doc: "true: a drain may part VMs that a hard rule keeps together, and enforcement repairs it",
			Default: "true", Words: truth,
		},
		{
			Name: SettingDisperse,
			Doc: "true: balancing keeps the VMs of each customer spread over the nodes, whatever the balancer; " +
				"those of an offer with user-concentrated stay",
			Default: "false", Words: truth,
		},
		{
			Name: SettingSoftRules,
			Doc: "before-bands: only nodes that break the least of a VM's soft rules come to the gate; or within-bands: they " +
				"weigh, with their factors, among what the gate let in",
			Default: string(policies.BeforeBands), Words: []string{string(policies.BeforeBands), string(policies.WithinBands)},
		},
		{
			Name:    SettingUnlessContended,
			Doc:     "true: with before-bands, nodes on which work waits for CPU or memory come after all others",
			Default: "true", Words: truth,
		},
		{
			Name: SettingContendedAbove, Doc: "percent of the time in which work waits on a node that is contended, 1 to 100",
			Default: strconv.Itoa(policies.DefaultContendedAbove), check: number(SettingContendedAbove, 1, 100),
		},
	},
	Lists: []List{
		{
			Name: ListConstraints, Doc: "what a node has to pass; all of them if left out: " + strings.Join(Constraints(), ", "),
			Default: Constraints(), Words: Constraints(),
		},
		{
			Name:  ListWeighers,
			Doc:   "what is weighed, with factors: {NAME: FACTOR}; none if left out, then a node is drawn: " + strings.Join(Weighers(), ", "),
			Words: Weighers(), Pairs: true,
		},
		{Name: ListParameters, Doc: "of the balancer, instead of its defaults: {NAME: NUMBER}", Pairs: true},
	},
}

// plannerAliases are the names that the planners had where they come from.
var plannerAliases = map[string]string{
	"FirstFitPlanner":            "first-fit",
	"UserDispersingPlanner":      "user-dispersing",
	"UserConcentratedPodPlanner": "user-concentrated",
}

func namesOf[T any](all []T, name func(*T) string) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = name(&all[i])
	}
	return names
}

// Constraints are the names of all constraints.
func Constraints() []string {
	return namesOf(constraint.All(), func(c *constraint.Constraint) string { return c.Name })
}

// Weighers are the names of all weighers.
func Weighers() []string {
	return namesOf(weigher.All(), func(w *weigher.Weigher) string { return w.Name })
}

// Planners are the names of all planners.
func Planners() []string {
	return namesOf(planner.All(), func(p *planner.Planner) string { return p.Name })
}

// Selectors are the names of all selectors.
func Selectors() []string {
	return namesOf(selector.All(), func(s *selector.Selector) string { return s.Name })
}

// Balancers are the names of all balancers, with the one that does nothing first.
func Balancers() []string {
	return append([]string{balance.None}, namesOf(balance.Balancers(), func(b *balance.Balancer) string { return b.Name })...)
}

// Setting is the setting of that name. The form has to have it.
func (f Form) Setting(name string) Setting {
	at := slices.IndexFunc(f.Settings, func(s Setting) bool { return s.Name == name })
	return f.Settings[at]
}

// ContendedAbove is the percent of waiting that a policy's settings give, 0 where waiting does not matter to them.
func ContendedAbove(setting func(name string) string) float64 {
	above, err := strconv.ParseFloat(setting(SettingContendedAbove), 64)
	if err != nil || setting(SettingUnlessContended) != "true" {
		return 0
	}
	return above
}

// Pairs reads a list of pairs.
func Pairs(list []string) map[string]float64 {
	all := make(map[string]float64, len(list))
	for _, pair := range list {
		name, value := CutPair(pair)
		all[name] = value
	}
	return all
}
