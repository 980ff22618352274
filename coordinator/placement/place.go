package placement

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

// Place decides where the request goes: one pass through Filter, Order, Gate, Weigh and Select. ID, Caller, Operation and
// DryRun of the decision are the caller's to fill in; At is the view's.
//
// The same view, request, policy and seed give the same decision, whatever the order of the nodes was when the view was
// made. On a migration the VM is left out of its own node's figures, and that node is a candidate: chosen, it means Stay.
func Place(view *cluster.View, request Request, policy Policy, seed uint64) Decision {
	decision := Decision{At: view.At, Policy: policy.Name, Seed: seed, Request: request, Outcome: Refused}
	engine, err := policy.compile()
	if err != nil {
		decision.Reason = err.Error()
		return decision
	}
	if request.Current != "" {
		view = view.Without(request.VM, request.Current)
	}
	r := &run{
		engine: engine, view: view, seed: seed,
		input: rule.Input{
			At: view.At, Memory: request.Memory, VCPUs: request.VCPUs,
			Pinned: request.Pinned, PinnedName: displayName(view, request.Pinned),
			Excluded: request.Excluded, Current: request.Current, SystemKeys: policy.SystemKeys,
		},
	}
	r.filter()
	r.candidates = engine.choose(&r.input, view.Nodes, r.admitted, seed)
	r.record(&decision)
	return decision
}

// run is one pass of an engine over a view.
type run struct {
	engine     *engine
	view       *cluster.View
	input      rule.Input
	seed       uint64
	verdicts   []rule.Verdict // a row of len(constraints) for each node
	admitted   []int          // nodes that passed, as indexes into the view
	candidates []candidate    // the same, best first
}

// filter runs every constraint on every node, also after a refusal: an explanation shows all that is wrong.
func (r *run) filter() {
	constraints := r.engine.constraints
	r.verdicts = make([]rule.Verdict, 0, len(constraints)*len(r.view.Nodes))
	for i, node := range r.view.Nodes {
		passed := true
		for c := range constraints {
			verdict := constraints[c].Check(&r.input, node)
			passed = passed && verdict.Passed
			r.verdicts = append(r.verdicts, verdict)
		}
		if passed {
			r.admitted = append(r.admitted, i)
		}
	}
}

// verdictsOf is the row of one node.
func (r *run) verdictsOf(node int) []rule.Verdict {
	width := len(r.engine.constraints)
	return r.verdicts[node*width : (node+1)*width]
}

// placed tells whether a node was found.
func (r *run) placed() bool { return len(r.candidates) > 0 && !r.candidates[0].shut }

func displayName(view *cluster.View, node string) string {
	if found := view.Node(node); found != nil && found.Node.Name != "" {
		return found.Node.Name
	}
	return node
}
