package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/weigher"
)

// Policy is what a cluster switches on: plain data, rules by name. It is validated where it comes in; Place refuses
// everything on a policy that is not valid.
type Policy struct {
	Name        string   `json:"name"`
	Constraints []string `json:"constraints"` // all have to pass
	Planner     string   `json:"planner"`
	Gate        Gate     `json:"gate"`
	Weighers    []Factor `json:"weighers"`
	Selector    string   `json:"selector"` // how several weighers are combined

	// SystemKeys are the cluster's own keys, which every VM inherits.
	SystemKeys []key.Weighted `json:"system_keys"`
}

// Factor is one weigher of a policy. The factor counts only beside other weighers.
type Factor struct {
	Weigher string  `json:"weigher"`
	Factor  float64 `json:"factor"`
}

// systemScore is the weigher whose score a gate compares with its thresholds.
const systemScore = "system-keys"

// Affinity is the built-in policy after FCO: both memory ledgers as constraints, and the node with the highest score over
// the special keys. Each call gives a copy of its own.
func Affinity() Policy {
	names := make([]string, 0, len(constraint.All()))
	for _, c := range constraint.All() {
		names = append(names, c.Name)
	}
	return Policy{
		Name:        "affinity",
		Constraints: names,
		Planner:     "first-fit",
		Gate:        Gate{Kind: GateOff},
		Weighers:    []Factor{{Weigher: systemScore, Factor: 1}},
		Selector:    SelectRank,
		SystemKeys:  key.ClusterDefaults(),
	}
}

// ErrInvalidPolicy is wrapped by every error about a policy.
var ErrInvalidPolicy = errors.New("policy is not valid")

// Validate names the first thing that is wrong with the policy.
func (p Policy) Validate() error {
	_, err := p.compile()
	return err
}

// engine is a policy with its rules looked up.
type engine struct {
	policy      Policy
	constraints []constraint.Constraint
	planner     planner.Planner
	thresholds  []float64       // nil: the gate is off
	gated       weigher.Weigher // whose score the gate looks at
	weighers    []weigher.Weigher
	factors     []float64
}

func (p Policy) compile() (*engine, error) {
	invalid := func(format string, a ...any) (*engine, error) {
		return nil, fmt.Errorf("%w: policy %q: %s", ErrInvalidPolicy, p.Name, fmt.Sprintf(format, a...))
	}
	e := &engine{policy: p}
	seen := make(map[string]bool)
	twice := func(name string) bool {
		was := seen[name]
		seen[name] = true
		return was
	}
	for _, name := range p.Constraints {
		found, known := constraint.ByName(name)
		if !known {
			return invalid("there is no constraint %q", name)
		}
		if twice("constraint " + name) {
			return invalid("constraint %q is there twice", name)
		}
		e.constraints = append(e.constraints, found)
	}
	for _, c := range constraint.All() {
		if c.Mandatory && !slices.Contains(p.Constraints, c.Name) {
			return invalid("constraint %q cannot be left out", c.Name)
		}
	}
	var known bool
	if e.planner, known = planner.ByName(p.Planner); !known {
		return invalid("there is no planner %q", p.Planner)
	}
	if err := p.Gate.validate(); err != nil {
		return invalid("%v", err)
	}
	if p.Gate.Kind == GateBands {
		e.thresholds = Thresholds(p.Gate.Initial, p.Gate.Final, p.Gate.Steps)
		if e.gated, known = weigher.ByName(systemScore); !known {
			return invalid("there is no weigher %q for the gate", systemScore)
		}
	}
	for _, factor := range p.Weighers {
		found, known := weigher.ByName(factor.Weigher)
		if !known {
			return invalid("there is no weigher %q", factor.Weigher)
		}
		if twice("weigher " + factor.Weigher) {
			return invalid("weigher %q is there twice", factor.Weigher)
		}
		if !finite(factor.Factor) {
			return invalid("the factor of weigher %q is %v, want a finite number", factor.Weigher, factor.Factor)
		}
		e.weighers, e.factors = append(e.weighers, found), append(e.factors, factor.Factor)
	}
	if p.Selector != SelectRank {
		return invalid("there is no selector %q", p.Selector)
	}
	for _, k := range p.SystemKeys {
		if !finite(k.Value) || !finite(k.Weight) {
			return invalid("key %q has value %v and weight %v, want finite numbers", k.Name, k.Value, k.Weight)
		}
		if twice("key " + k.Name) {
			return invalid("key %q is there twice", k.Name)
		}
	}
	return e, nil
}

// finite numbers are also small enough that no sum of them is not.
func finite(f float64) bool {
	const most = 1e12
	return math.Abs(f) <= most
}
