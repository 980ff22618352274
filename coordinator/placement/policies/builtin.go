package policies

import (
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
)

// The weighers of the built-in policy.
const (
	SystemScore   = "system-keys"   // whose score a gate compares with its thresholds
	CustomerScore = "customer-keys" // which decides inside the band
)

// VCPUsPromised is the constraint that a cluster may switch on.
const VCPUsPromised = constraint.VCPUsPromised

// The names of the built-in policies.
const (
	Affinity = "affinity"              // FCO: rounds of system keys, then customer keys
	EvenLoad = "evenly-distributed"    // oVirt: by CPU load and memory
	EvenVMs  = "vm-evenly-distributed" // oVirt: by how many VMs a node has
	None     = "none"                  // nodes that pass the constraints are drawn
)

// managerGrace is oVirt's default of SPMVMCountGrace.
const managerGrace = 5

// Builtins is the names of the built-in policies, the default one first.
func Builtins() []string { return []string{Affinity, EvenLoad, EvenVMs, None} }

// DefaultBalancer is the name of the balancer that goes with a built-in policy; "none" with any other.
func DefaultBalancer(policy string) string {
	switch policy {
	case EvenLoad:
		return "even-load"
	case EvenVMs:
		return "even-vm-count"
	default:
		return "none"
	}
}

// Builtin is a built-in policy by name for a cluster with these settings; false if no built-in policy has that name. All of
// them have every constraint but VCPUsPromised, which those have that weigh and those of clusters that promise vCPUs. So hard rules of
// groups always hold. The factors are oVirt's. Each call returns a new copy.
func Builtin(name string, settings model.Settings) (Policy, bool) {
	policy := Policy{
		Name: name, Planner: "first-fit", Gate: Gate{Kind: GateOff}, Selector: "rank", CustomerKeyScope: settings.KeyScope,
		Weighers: []Factor{
			{Weigher: CustomerScore, Factor: 1},
			{Weigher: "node-affinity", Factor: 20},
			{Weigher: "vm-affinity", Factor: 1},
			{Weigher: "preferred-nodes", Factor: 99},
		},
		SoftRules: BeforeBands, ContendedAbove: DefaultContendedAbove,
	}
	all := constraint.All()
	weighs := name == EvenLoad || name == EvenVMs
	for i := range all {
		if all[i].Name != VCPUsPromised || weighs || settings.PromiseVCPUs {
			policy.Constraints = append(policy.Constraints, all[i].Name)
		}
	}
	switch name {
	case Affinity:
		policy.Gate = Gate{Kind: GateBands, Initial: settings.InitialMSAV, Final: settings.FinalMSAV, Steps: settings.MSAVSteps}
	case EvenLoad:
		policy.Weighers = append([]Factor{{Weigher: "cpu-load", Factor: 2}, {Weigher: "memory-free", Factor: 1}}, policy.Weighers...)
	case EvenVMs:
		policy.Weighers = append([]Factor{{Weigher: "vm-count", Factor: 2}}, policy.Weighers...)
		policy.ManagerGrace = managerGrace
	case None:
		policy.Weighers = nil
	default:
		return Policy{}, false
	}
	return policy, true
}

// WithoutPrefer is the policy of a cluster in which some members know neither Prefer nor VCPUsPromised yet.
func (p Policy) WithoutPrefer() Policy {
	p.SoftRules, p.ContendedAbove = "", 0
	p.Constraints = slices.DeleteFunc(slices.Clone(p.Constraints), func(c string) bool { return c == VCPUsPromised })
	return p
}

// Default is the default policy with the default settings of a cluster. Once Prefer has chosen, it is exactly FCO.
func Default() Policy {
	policy, _ := Builtin(Affinity, model.DefaultSettings())
	return policy
}
