package estate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
)

// BuiltinPolicies are the policies that are there without being declared, as records, by name. Nobody changes or deletes
// them, and no other policy has their names.
func BuiltinPolicies() []model.Resource {
	var all []model.Resource
	for _, name := range slices.Sorted(slices.Values(policies.Builtins())) {
		policy, _ := policies.Builtin(name, model.DefaultSettings())
		all = append(all, builtinRecord(policy))
	}
	return all
}

// builtinRecord is a built-in policy as it could have been declared.
func builtinRecord(policy policies.Policy) model.Resource {
	r := model.Resource{ID: model.BuiltIn + policy.Name, Kind: model.KindPolicy, Name: policy.Name, Settings: map[string]string{
		schema.SettingGate: string(policy.Gate.Kind), schema.SettingPlanner: policy.Planner, schema.SettingSelector: policy.Selector,
		schema.SettingBalancer: policies.DefaultBalancer(policy.Name),
	}}
	var factors []string
	for _, factor := range policy.Weighers {
		factors = append(factors, schema.PairText(factor.Weigher, factor.Factor))
	}
	r.Lists = map[string][]string{schema.ListConstraints: policy.Constraints}
	if len(factors) > 0 {
		slices.Sort(factors)
		r.Lists[schema.ListWeighers] = factors
	}
	return r
}

// Builtin is the resource of a kind that is there without being declared, by name: a built-in policy.
func Builtin(kind model.Kind, name string) (model.Resource, bool) {
	if kind != model.KindPolicy {
		return model.Resource{}, false
	}
	return BuiltinByID(model.BuiltIn + name)
}

// BuiltinByID is the built-in policy with this ID.
func BuiltinByID(id string) (model.Resource, bool) {
	name, is := strings.CutPrefix(id, model.BuiltIn)
	if !is {
		return model.Resource{}, false
	}
	policy, known := policies.Builtin(name, model.DefaultSettings())
	if !known {
		return model.Resource{}, false
	}
	return builtinRecord(policy), true
}

// PolicyOf is how a cluster places VMs and evens itself out: the policy that its record links to, affinity if none, with the
// cluster's own settings filled in. The error wraps ErrDangling, or says what of the policy this release cannot do.
func PolicyOf(source Source, record model.Resource) (policies.Policy, balance.Chosen, error) {
	linked, err := policyRecord(source, record)
	if err != nil {
		return policies.Policy{}, balance.Chosen{}, err
	}
	policy, chosen := readPolicy(&linked, model.SettingsOf(&record))
	builtIn := strings.HasPrefix(linked.ID, model.BuiltIn)
	if builtIn {
		policy, _ = policies.Builtin(linked.Name, model.SettingsOf(&record))
	}
	if members, leveled := source.(interface{ FeatureLevel() uint32 }); leveled && members.FeatureLevel() < policies.PreferLevel {
		policy = policy.WithoutPrefer()
	}
	if builtIn {
		return policy, chosen, nil
	}
	if err := placement.Validate(policy); err != nil {
		return policies.Policy{}, balance.Chosen{}, err
	}
	return policy, chosen, balance.Validate(chosen)
}

// policyRecord is the policy that a cluster links to.
func policyRecord(source Source, record model.Resource) (model.Resource, error) {
	id := record.Links[schema.LinkPolicy]
	if id == "" {
		id = model.BuiltIn + policies.Affinity
	}
	if built, known := BuiltinByID(id); known {
		return built, nil
	}
	w := &walk{source: source}
	linked := w.link(record, schema.LinkPolicy, model.KindPolicy)
	return linked, w.err
}

// readPolicy is what a policy's record says, in a cluster with these settings. Rules are in the order in which the engine
// lists them.
func readPolicy(r *model.Resource, settings model.Settings) (policies.Policy, balance.Chosen) {
	setting := func(name string) string { return Effective(r, schema.PolicyForm.Setting(name)) }
	policy := policies.Policy{
		Name: r.Name, Planner: setting(schema.SettingPlanner), Gate: policies.Gate{Kind: policies.GateOff},
		Selector: setting(schema.SettingSelector), CustomerKeyScope: settings.KeyScope,
	}
	if setting(schema.SettingGate) == string(policies.GateBands) {
		policy.Gate = policies.Gate{
			Kind: policies.GateBands, Initial: settings.InitialMSAV, Final: settings.FinalMSAV, Steps: settings.MSAVSteps,
		}
	}
	policy.SoftRules = policies.SoftRules(setting(schema.SettingSoftRules))
	policy.ContendedAbove = schema.ContendedAbove(setting)
	listed := r.Lists[schema.ListConstraints]
	policy.Constraints = slices.DeleteFunc(schema.Constraints(), func(name string) bool {
		return len(listed) > 0 && !slices.Contains(listed, name) && (name != policies.VCPUsPromised || !settings.PromiseVCPUs)
	})
	factors := schema.Pairs(r.Lists[schema.ListWeighers])
	for _, name := range schema.Weighers() {
		if factor, on := factors[name]; on {
			policy.Weighers = append(policy.Weighers, policies.Factor{Weigher: name, Factor: factor})
		}
	}
	chosen := balance.Chosen{Balancer: setting(schema.SettingBalancer)}
	if parameters := schema.Pairs(r.Lists[schema.ListParameters]); len(parameters) > 0 {
		chosen.Parameters = parameters
	}
	if grace, has := chosen.Parameter("SPMVMCountGrace"); has {
		policy.ManagerGrace = int(grace)
	}
	return policy, chosen
}

// parametersOf are all parameters of a policy's balancer, set or by default.
func parametersOf(r *model.Resource) []string {
	_, chosen := readPolicy(r, model.DefaultSettings())
	balancer, _ := balance.ByName(chosen.Balancer)
	var all []string
	for _, parameter := range balancer.Parameters {
		value, _ := chosen.Parameter(parameter.Name)
		all = append(all, schema.PairText(parameter.Name, value))
	}
	slices.Sort(all)
	return all
}

// policy asks the engine and the balancer whether they can do what a policy says.
func (c *checker) policy(r *model.Resource, subject string) {
	if _, builtIn := Builtin(r.Kind, r.Name); builtIn || strings.HasPrefix(r.ID, model.BuiltIn) {
		c.report(subject, "name", "a built-in one has the name", "choose another name")
		return
	}
	before := len(c.problems)
	policy, chosen := readPolicy(r, model.DefaultSettings())
	if err := placement.Validate(policy); err != nil {
		said := strings.TrimPrefix(err.Error(), fmt.Sprintf("%v: policy %q: ", placement.ErrInvalidPolicy, r.Name))
		c.report(subject, "", said, "correct it, or leave it out")
	}
	var invalid *balance.InvalidError
	if err := balance.Validate(chosen); errors.As(err, &invalid) && len(c.problems) == before {
		c.report(
			subject, schema.ListParameters, fmt.Sprintf("%s %s of balancer %s is not valid", invalid.Field, invalid.Value, chosen.Balancer),
			"want "+invalid.Want,
		)
	}
}
