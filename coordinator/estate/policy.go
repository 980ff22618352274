package estate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/planner"
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

	ListConstraints = "constraints"
	ListWeighers    = "weighers"   // NAME=FACTOR
	ListParameters  = "parameters" // NAME=NUMBER, of the balancer
)

// policyForm is a scheduling policy: what a cluster switches on of the engine's rules, and how it evens itself out.
var policyForm = Form{
	Kind: cluster.KindPolicy, Plural: "policies",
	Doc: "a scheduling policy: how the clusters that link to it choose nodes and even VMs out",
	Settings: []Setting{
		{Name: SettingGate, Doc: "bands: the rounds of system keys leave the nodes that count as equal; or off", Default: string(placement.GateBands), Words: []string{string(placement.GateBands), string(placement.GateOff)}},
		{Name: SettingPlanner, Doc: "what orders nodes before they are weighed: " + anyOf(planners()), Default: "first-fit", Words: planners()},
		{Name: SettingSelector, Doc: "how several weighers are combined: " + anyOf(selectors()), Default: placement.SelectRank, Words: selectors()},
		{Name: SettingBalancer, Doc: "what evens the cluster out: " + anyOf(balancers()), Default: balance.None, Words: balancers()},
		{Name: SettingDrainIgnores, Doc: "true: a drain may part VMs that a hard rule keeps together, and enforcement repairs it", Default: "true", Words: truth},
		{Name: SettingDisperse, Doc: "true: balancing keeps the VMs of each customer spread over the nodes, whatever the balancer; those of an offer with user-concentrated stay", Default: "false", Words: truth},
	},
	Lists: []List{
		{Name: ListConstraints, Doc: "what a node has to pass; all of them if left out: " + strings.Join(constraints(), ", "), Default: constraints(), Words: constraints()},
		{Name: ListWeighers, Doc: "what is weighed, with factors: {NAME: FACTOR}; none if left out, then a node is drawn: " + strings.Join(weighers(), ", "), Words: weighers(), Pairs: true},
		{Name: ListParameters, Doc: "of the balancer, instead of its defaults: {NAME: NUMBER}", Pairs: true},
	},
}

func namesOf[T any](all []T, name func(*T) string) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = name(&all[i])
	}
	return names
}

func constraints() []string {
	return namesOf(constraint.All(), func(c *constraint.Constraint) string { return c.Name })
}

func weighers() []string {
	return namesOf(weigher.All(), func(w *weigher.Weigher) string { return w.Name })
}

func planners() []string {
	return namesOf(planner.All(), func(p *planner.Planner) string { return p.Name })
}

func selectors() []string {
	return namesOf(selector.All(), func(s *selector.Selector) string { return s.Name })
}

func balancers() []string {
	return append([]string{balance.None}, namesOf(balance.Balancers(), func(b *balance.Balancer) string { return b.Name })...)
}

// BuiltinPolicies are the policies that are there without being declared, as records, by name. Nobody changes or deletes
// them, and no other policy has their names.
func BuiltinPolicies() []cluster.Resource {
	var policies []cluster.Resource
	for _, name := range slices.Sorted(slices.Values(placement.Builtins())) {
		policy, _ := placement.Builtin(name, cluster.DefaultSettings())
		policies = append(policies, builtinRecord(policy))
	}
	return policies
}

// builtinRecord is a built-in policy as it could have been declared.
func builtinRecord(policy placement.Policy) cluster.Resource {
	r := cluster.Resource{ID: cluster.BuiltIn + policy.Name, Kind: cluster.KindPolicy, Name: policy.Name, Settings: map[string]string{
		SettingGate: string(policy.Gate.Kind), SettingPlanner: policy.Planner, SettingSelector: policy.Selector,
		SettingBalancer: placement.DefaultBalancer(policy.Name),
	}}
	var factors []string
	for _, factor := range policy.Weighers {
		factors = append(factors, PairText(factor.Weigher, factor.Factor))
	}
	if len(factors) > 0 {
		slices.Sort(factors)
		r.Lists = map[string][]string{ListWeighers: factors}
	}
	return r
}

// Builtin is the resource of a kind that is there without being declared, by name: a built-in policy.
func Builtin(kind cluster.Kind, name string) (cluster.Resource, bool) {
	if kind != cluster.KindPolicy {
		return cluster.Resource{}, false
	}
	return BuiltinByID(cluster.BuiltIn + name)
}

// BuiltinByID is the built-in policy with this ID.
func BuiltinByID(id string) (cluster.Resource, bool) {
	name, is := strings.CutPrefix(id, cluster.BuiltIn)
	if !is {
		return cluster.Resource{}, false
	}
	policy, known := placement.Builtin(name, cluster.DefaultSettings())
	if !known {
		return cluster.Resource{}, false
	}
	return builtinRecord(policy), true
}

// PolicyOf is how a cluster places VMs and evens itself out: the policy that its record links to, affinity if none, with the
// cluster's own settings filled in. The error wraps ErrDangling, or says what of the policy this release cannot do.
func PolicyOf(source Source, record cluster.Resource) (placement.Policy, balance.Chosen, error) {
	linked, err := policyRecord(source, record)
	if err != nil {
		return placement.Policy{}, balance.Chosen{}, err
	}
	policy, chosen := readPolicy(&linked, cluster.SettingsOf(&record))
	if strings.HasPrefix(linked.ID, cluster.BuiltIn) {
		policy, _ = placement.Builtin(linked.Name, cluster.SettingsOf(&record))
		return policy, chosen, nil
	}
	if err := policy.Validate(); err != nil {
		return placement.Policy{}, balance.Chosen{}, err
	}
	return policy, chosen, balance.Validate(chosen)
}

// policyRecord is the policy that a cluster links to.
func policyRecord(source Source, record cluster.Resource) (cluster.Resource, error) {
	id := record.Links[LinkPolicy]
	if id == "" {
		id = cluster.BuiltIn + placement.PolicyAffinity
	}
	if built, known := BuiltinByID(id); known {
		return built, nil
	}
	w := &walk{source: source}
	linked := w.link(record, LinkPolicy, cluster.KindPolicy)
	return linked, w.err
}

// readPolicy is what a policy's record says, in a cluster with these settings. Rules are in the order in which the engine
// lists them.
func readPolicy(r *cluster.Resource, settings cluster.Settings) (placement.Policy, balance.Chosen) {
	setting := func(name string) string { return Effective(r, policyForm.setting(name)) }
	policy := placement.Policy{
		Name: r.Name, Planner: setting(SettingPlanner), Gate: placement.Gate{Kind: placement.GateOff},
		Selector: setting(SettingSelector), CustomerKeyScope: settings.KeyScope,
	}
	if setting(SettingGate) == string(placement.GateBands) {
		policy.Gate = placement.Gate{
			Kind: placement.GateBands, Initial: settings.InitialMSAV, Final: settings.FinalMSAV, Steps: settings.MSAVSteps,
		}
	}
	listed := r.Lists[ListConstraints]
	policy.Constraints = slices.DeleteFunc(constraints(), func(name string) bool { return len(listed) > 0 && !slices.Contains(listed, name) })
	factors := pairs(r.Lists[ListWeighers])
	for _, name := range weighers() {
		if factor, on := factors[name]; on {
			policy.Weighers = append(policy.Weighers, placement.Factor{Weigher: name, Factor: factor})
		}
	}
	chosen := balance.Chosen{Balancer: setting(SettingBalancer)}
	if parameters := pairs(r.Lists[ListParameters]); len(parameters) > 0 {
		chosen.Parameters = parameters
	}
	if grace, has := chosen.Parameter("SPMVMCountGrace"); has {
		policy.ManagerGrace = int(grace)
	}
	return policy, chosen
}

// parametersOf are all parameters of a policy's balancer, set or by default.
func parametersOf(r *cluster.Resource) []string {
	_, chosen := readPolicy(r, cluster.DefaultSettings())
	balancer, _ := balance.ByName(chosen.Balancer)
	var all []string
	for _, parameter := range balancer.Parameters {
		value, _ := chosen.Parameter(parameter.Name)
		all = append(all, PairText(parameter.Name, value))
	}
	slices.Sort(all)
	return all
}

func (f Form) setting(name string) Setting {
	at := slices.IndexFunc(f.Settings, func(s Setting) bool { return s.Name == name })
	return f.Settings[at]
}

func pairs(list []string) map[string]float64 {
	all := make(map[string]float64, len(list))
	for _, pair := range list {
		name, value := CutPair(pair)
		all[name] = value
	}
	return all
}

// policy asks the engine and the balancer whether they can do what a policy says.
func (c *checker) policy(r *cluster.Resource, subject string) {
	if _, builtIn := Builtin(r.Kind, r.Name); builtIn || strings.HasPrefix(r.ID, cluster.BuiltIn) {
		c.report(subject, "name", "a built-in one has the name", "choose another name")
		return
	}
	before := len(c.problems)
	policy, chosen := readPolicy(r, cluster.DefaultSettings())
	if err := policy.Validate(); err != nil {
		said := strings.TrimPrefix(err.Error(), fmt.Sprintf("%v: policy %q: ", placement.ErrInvalidPolicy, r.Name))
		c.report(subject, "", said, "correct it, or leave it out")
	}
	var invalid *balance.InvalidError
	if err := balance.Validate(chosen); errors.As(err, &invalid) && len(c.problems) == before {
		c.report(subject, ListParameters, fmt.Sprintf("%s %s of balancer %s is not valid", invalid.Field, invalid.Value, chosen.Balancer), "want "+invalid.Want)
	}
}
