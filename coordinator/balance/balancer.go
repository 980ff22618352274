package balance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Balancer is one way to measure how even a cluster is, and to find moves that make it more even.
type Balancer struct {
	Name       string // in policies, plans and metrics
	Doc        string // one sentence for people
	Unit       string // of its figure of a cluster
	Parameters []Parameter
	// Settles is how long after a move its effect can be measured. 0: as soon as the nodes have reported.
	Settles time.Duration

	// Watch sees the cluster in every pass, whether or not a move is proposed in it. Nil: nothing has to be watched.
	Watch func(s *Situation)
	// Propose offers the moves of one pass, the best first, until one is taken. It is pure. If none was taken, why says the
	// reason.
	Propose proposer
	// Improve is Propose for a whole plan that somebody asked for. It also evens out what no pass would touch. Nil: Propose.
	Improve proposer
	// Figure is how uneven the cluster is; lower is better.
	Figure func(s *Situation) float64
}

type proposer = func(s *Situation, take func(Proposal) bool) (why string)

// Parameter is one number that a policy can give a balancer.
type Parameter struct {
	Name        string // as in policies: HighVMCount
	Doc         string
	Default     float64
	Least, Most float64
	Whole       bool   // only whole numbers
	Below       string // what a value below Least would lead to, in words
}

// HighCPU is a parameter of every balancer.
const HighCPU = "HighCPU"

var highCPU = Parameter{
	Name: HighCPU, Default: 80, Least: 1, Most: 100,
	Doc: "How busy a node's CPUs may be, in percent: no VM goes to a node that would be busier with it.",
}

// Proposal is one move that would help.
type Proposal struct {
	VM      int                     // index into the situation's VMs
	Targets []int                   // nodes that are better for the VM, ascending; the engine chooses among them and the VM's own node
	Reason  func(target int) string // in words, once the engine has chosen
}

// None is the name of the balancer that does nothing.
const None = "none"

// Chosen is the balancer of a policy with its parameters. The zero value balances nothing.
type Chosen struct {
	Balancer   string             `json:"balancer"`
	Parameters map[string]float64 `json:"parameters,omitempty"` // a parameter that is not set has its default
}

// Nothing tells whether the policy has no balancer.
func (c Chosen) Nothing() bool { return c.Balancer == "" || c.Balancer == None }

// Parameter is one of the balancer's parameters, set or by default; false if the balancer has none of that name.
func (c Chosen) Parameter(name string) (float64, bool) {
	balancer, _ := ByName(c.Balancer)
	at := slices.IndexFunc(balancer.Parameters, func(p Parameter) bool { return p.Name == name })
	if at < 0 {
		return 0, false
	}
	if value, set := c.Parameters[name]; set {
		return value, true
	}
	return balancer.Parameters[at].Default, true
}

// parameters is all parameters, with every default filled in.
func (c Chosen) parameters(balancer Balancer) map[string]float64 {
	all := make(map[string]float64, len(balancer.Parameters))
	for _, p := range balancer.Parameters {
		all[p.Name] = p.Default
	}
	maps.Copy(all, c.Parameters)
	return all
}

// InvalidError says what is wrong with a policy's balancer.
type InvalidError struct {
	Field string // what is wrong: balancer, or a parameter's name
	Value string
	Want  string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s is %s, want %s", e.Field, e.Value, e.Want)
}

// Validate names the first fault of a policy's balancer: an unknown name, a parameter that the balancer does not have, or a
// value out of range. The error is an *InvalidError.
func Validate(c Chosen) error {
	if c.Nothing() {
		for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
			return &InvalidError{Field: name, Value: number(c.Parameters[name]), Want: "nothing: without a balancer there are no parameters"}
		}
		return nil
	}
	balancer, known := ByName(c.Balancer)
	if !known {
		return &InvalidError{Field: "balancer", Value: strconv.Quote(c.Balancer), Want: "one of " + strings.Join(names(), ", ")}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		at := slices.IndexFunc(balancer.Parameters, func(p Parameter) bool { return p.Name == name })
		if at < 0 {
			return &InvalidError{
				Field: name, Value: number(c.Parameters[name]),
				Want: fmt.Sprintf("a parameter of %s: %s", balancer.Name, strings.Join(balancer.parameterNames(), ", ")),
			}
		}
		if err := balancer.Parameters[at].check(c.Parameters[name]); err != nil {
			return err
		}
	}
	return nil
}

// check tells whether the parameter may have the value. NaN is outside every range.
func (p *Parameter) check(value float64) error {
	if value >= p.Least && value <= p.Most && (!p.Whole || value == math.Trunc(value)) {
		return nil
	}
	want := fmt.Sprintf("a number from %s to %s", number(p.Least), number(p.Most))
	if p.Whole {
		want = "a whole " + strings.TrimPrefix(want, "a ")
	}
	if p.Below != "" && value < p.Least {
		want += ": " + p.Below
	}
	return &InvalidError{Field: p.Name, Value: number(value), Want: want}
}

func (b *Balancer) parameterNames() []string {
	var all []string
	for _, p := range b.Parameters {
		all = append(all, p.Name)
	}
	return all
}

func names() []string {
	known := []string{None}
	for _, b := range all {
		known = append(known, b.Name)
	}
	return known
}

// number is a figure as people write it.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
