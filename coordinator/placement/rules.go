package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
	"berth/coordinator/placement/weigher"
)

// ErrInvalidPolicy is wrapped by every error about a policy.
var ErrInvalidPolicy = errors.New("policy is not valid")

// Validate names the first thing that is wrong with a policy. With one that is not valid Place refuses everything.
func Validate(policy policies.Policy) error {
	_, err := NewEngine(policy)
	return err
}

// NewEngine looks the rules of a policy up. The error wraps ErrInvalidPolicy.
func NewEngine(policy policies.Policy) (*Engine, error) {
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
func engineOf(policy policies.Policy) (*Engine, error) {
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
	if err := policy.Gate.Validate(); err != nil {
		return invalid("%v", err)
	}
	if policy.Gate.Kind == policies.GateBands {
		e.thresholds = policies.Thresholds(policy.Gate.Initial, policy.Gate.Final, policy.Gate.Steps)
		if e.gated, known = weigher.ByName(policies.SystemScore); !known {
			return invalid("there is no weigher %q for the gate", policies.SystemScore)
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
	if policy.ManagerGrace < 0 || policy.ManagerGrace > policies.MaxManagerGrace {
		return invalid("the grace of nodes with the site's management is %d VMs, want 0 to %d", policy.ManagerGrace, policies.MaxManagerGrace)
	}
	if scope := policy.CustomerKeyScope; scope != model.ScopeCustomer && scope != model.ScopeCluster {
		return invalid("there is no customer key scope %q", scope)
	}
	return e, nil
}

// compiled is a policy that was checked, with the rules that it names.
type compiled struct {
	policy      policies.Policy
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

func (p *compiled) addWeighers(factors []policies.Factor) error {
	for i, factor := range factors {
		found, known := weigher.ByName(factor.Weigher)
		if !known {
			return fmt.Errorf("there is no weigher %q", factor.Weigher)
		}
		if slices.ContainsFunc(factors[:i], func(f policies.Factor) bool { return f.Weigher == factor.Weigher }) {
			return fmt.Errorf("weigher %q is there twice", factor.Weigher)
		}
		if !policies.Finite(factor.Factor) {
			return fmt.Errorf("the factor of weigher %q is %v, want a finite number", factor.Weigher, factor.Factor)
		}
		p.weighers, p.factors = append(p.weighers, found), append(p.factors, factor.Factor)
	}
	return nil
}

// addWishes finds what Prefer asks: the weighers of soft rules that the policy has. One with a factor of 0 or less wishes nothing.
func (p *compiled) addWishes() error {
	switch p.policy.SoftRules {
	case "", policies.WithinBands:
	case policies.BeforeBands:
		for w := range p.weighers {
			if p.weighers[w].Wish && p.factors[w] > 0 {
				p.wishes = append(p.wishes, w)
			}
		}
		slices.SortStableFunc(p.wishes, func(a, b int) int { return cmp.Compare(p.factors[b], p.factors[a]) })
	default:
		return fmt.Errorf("soft rules cannot count %q, want %s or %s", p.policy.SoftRules, policies.BeforeBands, policies.WithinBands)
	}
	if above := p.policy.ContendedAbove; !policies.Finite(above) || above < 0 || above > wholePercent {
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
