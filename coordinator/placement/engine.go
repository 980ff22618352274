package placement

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
)

// Engine decides by one policy. It reuses its memory for each decision, so only one goroutine may use it at a time.
type Engine struct {
	compiled

	// One decision: what is asked, and what the stages made of it.
	request   *Request
	plan      planner.Planner // the request's own, or the policy's
	at        time.Time
	seed      uint64
	input     rule.Input
	workspace                   // what it works out of each node
	scorers   []weigher.Weigher // the weighers for which not all nodes are equal
	weights   []float64         // their factors
	several   combination       // the combination of several weighers
	wanting   weigher.Wishes    // what Prefer asks of this decision
	ranked    []candidate       // all candidates in order, if the best one cannot be found without
}

// Choice is the outcome of a decision without its explanation. Nodes are indexes into the columns.
type Choice struct {
	Node      int     // -1: none
	Round     int     // system round that the node entered at, from 1; 0: the gate is off, or none
	Threshold float64 // of that round
	// System and Customer are the node's scores. When the system rounds fail, System is the highest score of a candidate.
	System, Customer float64

	Candidates  int   // nodes that pass all constraints
	Band        int   // of them, those that the gate let in at the same round or before
	Ties        int   // of these, those as good as the best one, which counts too
	FailedPhase Phase // empty when a node was found

	Kept int // of the candidates of its tier, those that break no more of the soft rules; 0: Prefer was not asked

	RunnerUp int     // the next best; -1: none
	Behind   bool    // the runner-up stands in a later tier or breaks more of the soft rules: no score was compared
	Margin   float64 // how much better the node is than the runner-up: in system score if their rounds differ
	Stays    bool    // the node runs the VM already
}

// Choose decides. The same columns, time, request and seed give the same choice. The numbers of the request's keys must be
// finite (Request.Validate). It allocates nothing per node, except for memory that it keeps for the next time.
func (e *Engine) Choose(columns *view.Columns, at time.Time, request *Request, seed uint64) Choice {
	e.prepare(columns, at, request, seed)
	e.input.Meet(e.policy.CustomerKeyScope, request.Owner)
	e.input.Belong(request.VM, request.Labels, request.along())
	return e.choose()
}

// along is the VMs that come along with the one to be placed.
func (r *Request) along() []string {
	if r.Unit == nil {
		return nil
	}
	return r.Unit.VMs
}

// prepare fills in the input, except for what the customer keys meet and what groups say.
func (e *Engine) prepare(columns *view.Columns, at time.Time, request *Request, seed uint64) {
	e.request, e.at, e.seed = request, at, seed
	in := &e.input
	e.plan = e.planner
	if own, known := planner.ByName(request.Planner); known {
		e.plan = own
	}
	needs := request.needs(&e.plan)
	columns = columns.Around(needs)
	in.Columns, in.Now, in.Memory, in.VCPUs = columns, nanosOf(at), request.Memory, request.VCPUs
	in.Along, in.ManagerGrace = len(request.along()), e.policy.ManagerGrace
	if request.Unit != nil {
		in.Memory, in.VCPUs = in.Memory+request.Unit.Memory, in.VCPUs+request.Unit.VCPUs
	}
	in.Pinned, in.PinnedName = request.Pinned, request.Pinned
	if node, found := columns.Index(request.Pinned); found {
		in.PinnedName = in.Name(node)
	}
	in.Excluded, in.Current, in.Home = request.Excluded, request.Current, request.Home
	in.Leave, in.Among, in.Preferred, in.Restart = request.Leave, request.Among, request.Preferred, request.Restart
	in.AmongWho, in.AmongWhy = request.Purpose.ordering()
	in.SystemKeys, in.CustomerKeys = request.SystemKeys, request.CustomerKeys
	in.Disks, in.CopyStorage, in.DispersePools = request.Disks, request.CopyStorage, e.plan.Pools
	in.Headroom, in.Uncovered = nil, nil
	if columns.Headroom != nil && !request.Restart {
		in.Headroom = rule.NewHeadroom(
			columns, in, view.Allocation{VM: request.VM, Name: request.VMName, Labels: request.Labels, HA: request.HA},
		)
	}
	in.Networks, in.CPU, in.PassedCPU, in.Bindings = request.Networks, needs.CPU, request.PassedCPU, request.Bindings
	in.Apart = request.Apart
	e.size(columns.Len())
}

func nanosOf(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano()
}

// bypassed tells whether keys are ignored: with local storage the disk has decided when the VM was created ("only one viable
// choice of node", FCO). Constraints still hold.
func (e *Engine) bypassed() bool { return e.request.Home != "" && e.request.Purpose != ForCreate }

// rounds are the thresholds of the gate; nil when it is off.
func (e *Engine) rounds() []float64 {
	if e.bypassed() {
		return nil
	}
	return e.thresholds
}

// pickScorers selects the weighers for which not all nodes are equal. If there is none, the first weigher stands for all.
func (e *Engine) pickScorers() {
	e.scorers, e.weights, e.wanting.By = e.scorers[:0], e.weights[:0], e.wanting.By[:0]
	if e.bypassed() {
		return
	}
	e.pickWishes()
	for w := range e.weighers {
		if e.wanting.Has(w) {
			continue
		}
		if silent := e.weighers[w].Silent; silent == nil || !silent(&e.input) {
			e.scorers, e.weights = append(e.scorers, e.weighers[w]), append(e.weights, e.factors[w])
		}
	}
	for w := range e.weighers {
		if len(e.scorers) == 0 && !e.wanting.Has(w) {
			e.scorers, e.weights = append(e.scorers, e.weighers[w]), append(e.weights, e.factors[w])
		}
	}
}

// choose runs all stages on the prepared input. With one tier one pass finds the best node and the next.
func (e *Engine) choose() Choice {
	e.filter()
	e.pickScorers()
	e.several.weighed = false
	e.ranked = e.ranked[:0]
	var choice Choice
	switch {
	case !e.tiered() && len(e.wanting.By) > 0:
		choice = e.prefer()
	case !e.tiered():
		choice = e.scan(false)
	default:
		e.ranked = e.order()
		choice = e.choiceOf(e.ranked)
	}
	return e.stayUnlessBetter(choice)
}

// filter marks what the constraints refuse and collects the others.
func (e *Engine) filter() {
	clear(e.out)
	if e.roomy {
		constraint.SweepRoom(&e.input, e.out)
	}
	for c := range e.constraints {
		switch one := &e.constraints[c]; {
		case e.roomy && one.InRoom:
		case one.Sweep != nil:
			one.Sweep(&e.input, e.out)
		default:
			for node, out := range e.out {
				e.out[node] = out || !one.Check(&e.input, node).Passed
			}
		}
	}
	// Every node is written, and the next one overwrites it if it is refused: so there is no branch to mispredict.
	candidates, n := e.candidates[:len(e.out)], 0
	for node, out := range e.out {
		candidates[n] = int32(node)
		n += oneIf(!out)
	}
	e.candidates = candidates[:n]
}

// stayUnlessBetter keeps the VM where it is when the best node does not gain what the request asks for: in system score if it
// entered in another round, otherwise in what decides inside the round.
func (e *Engine) stayUnlessBetter(choice Choice) Choice {
	if e.request.IfBetter <= 0 || choice.Node < 0 || choice.Stays {
		return choice
	}
	current, found := e.input.Columns.Index(e.input.Current)
	if !found || e.out[current] {
		return choice
	}
	entered, system, customer := e.standing(current)
	if !e.alike(current, choice.Node) {
		return choice // a soft rule wants it
	}
	if entered == 0 && e.rounds() != nil {
		return choice // no round lets the node in, so system keys do not want the VM there
	}
	gain := choice.Customer - customer
	if entered != choice.Round {
		gain = choice.System - system
	}
	if gain >= e.request.IfBetter {
		return choice
	}
	choice.RunnerUp, choice.Margin, choice.Stays = choice.Node, -gain, true
	choice.Node, choice.Round, choice.System, choice.Customer, choice.Threshold = current, entered, system, customer, 0
	if entered > 0 {
		choice.Threshold, choice.Ties = e.thresholds[entered-1], 1
		choice.Band = e.enteredWith(current, choice.Threshold)
	}
	return choice
}

// standing is a candidate's round and scores after choose.
func (e *Engine) standing(node int) (entered int, system, customer float64) {
	if len(e.wanting.By) > 0 && len(e.ranked) == 0 {
		e.ranked = e.order()
	}
	for i := range e.ranked {
		if one := &e.ranked[i]; one.node == node {
			return one.band, one.system, one.score
		}
	}
	if thresholds := e.rounds(); thresholds != nil {
		entered = policies.Round(thresholds, e.system[node])
	}
	if len(e.scorers) > 1 {
		e.combine(e.entered(entered))
	}
	return entered, e.system[node], e.customer[node]
}

// Validate checks what the engine needs from a request. The error names the key.
func (r *Request) Validate() error {
	for _, keys := range [][]key.Weighted{r.SystemKeys, r.CustomerKeys} {
		for i, k := range keys {
			if !policies.Finite(k.Value) || !policies.Finite(k.Weight) {
				return fmt.Errorf("key %q has value %v and weight %v, want finite numbers", k.Name, k.Value, k.Weight)
			}
			if slices.ContainsFunc(keys[:i], func(other key.Weighted) bool { return other.Name == k.Name }) {
				return fmt.Errorf("key %q is there twice", k.Name)
			}
		}
	}
	if unit := r.Unit; unit != nil && (unit.Memory < 0 || unit.VCPUs < 0 || slices.Contains(unit.VMs, r.VM)) {
		return fmt.Errorf("%s come along with %v and %d vCPUs, want other VMs and amounts that are not negative",
			count(len(unit.VMs), "VM"), unit.Memory, unit.VCPUs)
	}
	if _, known := planner.ByName(r.Planner); !known && r.Planner != "" {
		return fmt.Errorf("there is no planner %q", r.Planner)
	}
	if len(r.Disks) > MaxRequestDisks {
		return fmt.Errorf("the VM has %d disks, at most %d will do", len(r.Disks), MaxRequestDisks)
	}
	if !policies.Finite(r.IfBetter) || r.IfBetter < 0 {
		return fmt.Errorf("a gain of %v is asked for, want a finite number that is not negative", r.IfBetter)
	}
	return nil
}
