package placement

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/selector"
	"berth/coordinator/placement/weigher"
)

// Policy is what a cluster uses: plain data, rules by name. It is validated where it comes in. With a policy that is not
// valid Place refuses everything.
type Policy struct {
	Name        string   `json:"name"`
	Constraints []string `json:"constraints"` // all have to pass
	Planner     string   `json:"planner"`
	Gate        Gate     `json:"gate"`
	Weighers    []Factor `json:"weighers"`
	Selector    string   `json:"selector"` // how several weighers are combined

	// CustomerKeyScope is whose VMs a customer key can meet.
	CustomerKeyScope model.KeyScope `json:"customer_key_scope"`

	// ManagerGrace is how many fewer VMs a node with the site's management should have, for vm-count (oVirt's SPMVMCountGrace).
	ManagerGrace int `json:"manager_grace,omitempty"`

	// SoftRules is where soft rules of groups and preferred nodes count; empty, as in decisions of earlier releases: WithinBands.
	SoftRules SoftRules `json:"soft_rules,omitempty"`
	// ContendedAbove is the percent of waiting above which no soft rule sends a VM to a node; 0: waiting does not matter.
	ContendedAbove float64 `json:"contended_above,omitempty"`
}

// SoftRules says where soft rules of groups and preferred nodes count.
type SoftRules string

// The places of soft rules.
const (
	BeforeBands SoftRules = "before-bands" // Prefer: only candidates that break the least come to the gate
	WithinBands SoftRules = "within-bands" // they weigh among the nodes that the gate let in
)

// DefaultContendedAbove is the percent of the time in which work waits for the CPU or the memory of a node that is contended.
const DefaultContendedAbove = 60.0

// PreferLevel is the feature level of the members from which decisions know Prefer. Before it soft rules count within the
// bands, as every member explains it.
const PreferLevel = 3

// MaxManagerGrace bounds Policy.ManagerGrace.
const MaxManagerGrace = 100_000

// Factor is one weigher of a policy. With only one weigher its factor does not count.
type Factor struct {
	Weigher string  `json:"weigher"`
	Factor  float64 `json:"factor"`
}

// The weighers of the built-in policy.
const (
	systemScore   = "system-keys"   // whose score a gate compares with its thresholds
	customerScore = "customer-keys" // which decides inside the band
)

// VCPUsPromised is the constraint that a cluster may switch on.
const VCPUsPromised = constraint.VCPUsPromised

// The names of the built-in policies.
const (
	PolicyAffinity = "affinity"              // FCO: rounds of system keys, then customer keys
	PolicyEvenLoad = "evenly-distributed"    // oVirt: by CPU load and memory
	PolicyEvenVMs  = "vm-evenly-distributed" // oVirt: by how many VMs a node has
	PolicyNone     = "none"                  // nodes that pass the constraints are drawn
)

// managerGrace is oVirt's default of SPMVMCountGrace.
const managerGrace = 5

// Builtins is the names of the built-in policies, the default one first.
func Builtins() []string { return []string{PolicyAffinity, PolicyEvenLoad, PolicyEvenVMs, PolicyNone} }

// DefaultBalancer is the name of the balancer that goes with a built-in policy; "none" with any other.
func DefaultBalancer(policy string) string {
	switch policy {
	case PolicyEvenLoad:
		return "even-load"
	case PolicyEvenVMs:
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
		Name: name, Planner: "first-fit", Gate: Gate{Kind: GateOff}, Selector: SelectRank, CustomerKeyScope: settings.KeyScope,
		Weighers: []Factor{
			{Weigher: customerScore, Factor: 1},
			{Weigher: "node-affinity", Factor: 20},
			{Weigher: "vm-affinity", Factor: 1},
			{Weigher: "preferred-nodes", Factor: 99},
		},
		SoftRules: BeforeBands, ContendedAbove: DefaultContendedAbove,
	}
	all := constraint.All()
	weighs := name == PolicyEvenLoad || name == PolicyEvenVMs
	for i := range all {
		if all[i].Name != VCPUsPromised || weighs || settings.PromiseVCPUs {
			policy.Constraints = append(policy.Constraints, all[i].Name)
		}
	}
	switch name {
	case PolicyAffinity:
		policy.Gate = Gate{Kind: GateBands, Initial: settings.InitialMSAV, Final: settings.FinalMSAV, Steps: settings.MSAVSteps}
	case PolicyEvenLoad:
		policy.Weighers = append([]Factor{{Weigher: "cpu-load", Factor: 2}, {Weigher: "memory-free", Factor: 1}}, policy.Weighers...)
	case PolicyEvenVMs:
		policy.Weighers = append([]Factor{{Weigher: "vm-count", Factor: 2}}, policy.Weighers...)
		policy.ManagerGrace = managerGrace
	case PolicyNone:
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

// Affinity is the default policy with the default settings of a cluster. Once Prefer has chosen, it is exactly FCO.
func Affinity() Policy {
	policy, _ := Builtin(PolicyAffinity, model.DefaultSettings())
	return policy
}

// ErrInvalidPolicy is wrapped by every error about a policy.
var ErrInvalidPolicy = errors.New("policy is not valid")

// Validate names the first thing that is wrong with the policy.
func (p Policy) Validate() error {
	_, err := NewEngine(p)
	return err
}

// NewEngine looks the rules of a policy up. The error wraps ErrInvalidPolicy.
func NewEngine(policy Policy) (*Engine, error) {
	for _, c := range constraint.All() {
		switch there := slices.Contains(policy.Constraints, c.Name); {
		case there:
		case c.Mandatory:
			return nil, fmt.Errorf("%w: policy %q: constraint %q cannot be left out", ErrInvalidPolicy, policy.Name, c.Name)
		case c.Implied:
			policy.Constraints = append(slices.Clip(policy.Constraints), c.Name)
		}
	}
	return engineOf(policy)
}

// engineOf is NewEngine for the policy of an old decision, whose release may have had fewer mandatory constraints.
func engineOf(policy Policy) (*Engine, error) {
	invalid := func(format string, a ...any) (*Engine, error) {
		return nil, fmt.Errorf("%w: policy %q: %s", ErrInvalidPolicy, policy.Name, fmt.Sprintf(format, a...))
	}
	n := len(policy.Weighers)
	e := &Engine{
		compiled: compiled{
			policy: policy, constraints: make([]constraint.Constraint, 0, len(policy.Constraints)),
			weighers: make([]weigher.Weigher, 0, n), factors: make([]float64, 0, n),
		},
		scorers: make([]weigher.Weigher, 0, n), weights: make([]float64, 0, n),
	}
	if err := e.addConstraints(policy.Constraints); err != nil {
		return invalid("%v", err)
	}
	var known bool
	if e.planner, known = planner.ByName(policy.Planner); !known {
		return invalid("there is no planner %q", policy.Planner)
	}
	if err := policy.Gate.validate(); err != nil {
		return invalid("%v", err)
	}
	if policy.Gate.Kind == GateBands {
		e.thresholds = Thresholds(policy.Gate.Initial, policy.Gate.Final, policy.Gate.Steps)
		if e.gated, known = weigher.ByName(systemScore); !known {
			return invalid("there is no weigher %q for the gate", systemScore)
		}
	}
	if err := e.addWeighers(policy.Weighers); err != nil {
		return invalid("%v", err)
	}
	if err := e.addSelector(policy.Selector); err != nil {
		return invalid("%v", err)
	}
	if err := e.addWishes(); err != nil {
		return invalid("%v", err)
	}
	if policy.ManagerGrace < 0 || policy.ManagerGrace > MaxManagerGrace {
		return invalid("the grace of nodes with the site's management is %d VMs, want 0 to %d", policy.ManagerGrace, MaxManagerGrace)
	}
	if scope := policy.CustomerKeyScope; scope != model.ScopeCustomer && scope != model.ScopeCluster {
		return invalid("there is no customer key scope %q", scope)
	}
	return e, nil
}

// compiled is a policy that was checked, with the rules that it names.
type compiled struct {
	policy      Policy
	constraints []constraint.Constraint
	roomy       bool            // the policy has all constraints that are InRoom
	planner     planner.Planner // of the policy
	thresholds  []float64       // nil: the gate is off
	gated       weigher.Weigher // whose score the gate looks at
	weighers    []weigher.Weigher
	factors     []float64
	selector    selector.Selector
	wishes      []int // weighers, by index, that count in Prefer: the higher factor first
}

func (p *compiled) addConstraints(names []string) error {
	var inRoom, covered int
	for i, name := range names {
		found, known := constraint.ByName(name)
		if !known {
			return fmt.Errorf("there is no constraint %q", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("constraint %q is there twice", name)
		}
		p.constraints = append(p.constraints, found)
	}
	for _, c := range constraint.All() {
		there := slices.Contains(names, c.Name)
		if c.InRoom {
			inRoom++
			if there {
				covered++
			}
		}
	}
	p.roomy = covered == inRoom
	return nil
}

func (p *compiled) addWeighers(factors []Factor) error {
	for i, factor := range factors {
		found, known := weigher.ByName(factor.Weigher)
		if !known {
			return fmt.Errorf("there is no weigher %q", factor.Weigher)
		}
		if slices.ContainsFunc(factors[:i], func(f Factor) bool { return f.Weigher == factor.Weigher }) {
			return fmt.Errorf("weigher %q is there twice", factor.Weigher)
		}
		if !finite(factor.Factor) {
			return fmt.Errorf("the factor of weigher %q is %v, want a finite number", factor.Weigher, factor.Factor)
		}
		p.weighers, p.factors = append(p.weighers, found), append(p.factors, factor.Factor)
	}
	return nil
}

// addWishes finds what Prefer asks: the weighers of soft rules that the policy has. One with a factor of 0 or less wishes nothing.
func (p *compiled) addWishes() error {
	switch p.policy.SoftRules {
	case "", WithinBands:
	case BeforeBands:
		for w := range p.weighers {
			if p.weighers[w].Wish && p.factors[w] > 0 {
				p.wishes = append(p.wishes, w)
			}
		}
		slices.SortStableFunc(p.wishes, func(a, b int) int { return cmp.Compare(p.factors[b], p.factors[a]) })
	default:
		return fmt.Errorf("soft rules cannot count %q, want %s or %s", p.policy.SoftRules, BeforeBands, WithinBands)
	}
	if above := p.policy.ContendedAbove; !finite(above) || above < 0 || above > wholePercent {
		return fmt.Errorf("nodes are contended above %v percent, want 0 to %v", above, wholePercent)
	}
	return nil
}

const wholePercent = 100.0

func (p *compiled) addSelector(name string) error {
	found, known := selector.ByName(name)
	if !known {
		return fmt.Errorf("there is no selector %q", name)
	}
	for w := range p.weighers {
		if found.Bounded && p.weighers[w].Maximum == nil {
			return fmt.Errorf("selector %q needs a maximum of every weigher, and %q has none", name, p.weighers[w].Name)
		}
	}
	p.selector = found
	return nil
}

// finite numbers are also small enough that every sum of them is finite.
func finite(f float64) bool {
	const most = 1e12
	return math.Abs(f) <= most
}
