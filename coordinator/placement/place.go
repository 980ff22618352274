package placement

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
)

// Place decides where the request goes: one pass through Filter, Order, Prefer, Gate, Weigh and Select over the
// nodes of the request's cluster. The caller fills in ID, Caller, Operation and DryRun of the decision; At is the view's time.
//
// The same view, request, policy and seed give the same decision, whatever order the nodes had. The VM is left out of its
// current node's figures, and that node is a candidate: choosing it means Stay.
func Place(view *view.View, request Request, policy policies.Policy, seed uint64) Decision {
	if request.Current != "" {
		view = view.Without(request.VM, request.Current)
	}
	columns := view.Columns(cmp.Or(request.Cluster, model.DefaultCluster))
	return place(columns, view.At, request, policy, seed, view)
}

// PlaceOn is Place on existing columns, which must leave the VM out of its current node. Without a view it cannot say which
// VM would have to move after a refusal.
func PlaceOn(columns *view.Columns, at time.Time, request Request, policy policies.Policy, seed uint64) Decision {
	return place(columns, at, request, policy, seed, nil)
}

func place(
	columns *view.Columns, at time.Time, request Request, policy policies.Policy, seed uint64, view *view.View,
) Decision {
	decision := Decision{At: at, Policy: policy.Name, Seed: seed, Request: request, Outcome: Refused}
	engine, err := engineFor(policy, &request)
	if err != nil {
		decision.Reason = err.Error()
		return decision
	}
	defer engine.borrow()()
	engine.record(&decision, engine.Choose(columns, at, &request, seed), view)
	return decision
}

// Try is Place on some columns of a view, which must leave the VM out of its current node. Of a refusal it finds no more than why,
// as a part of another sentence.
func Try(view *view.View, columns *view.Columns, request Request, policy policies.Policy, seed uint64) (decision Decision, why string) {
	decision = Decision{At: view.At, Policy: policy.Name, Seed: seed, Request: request, Outcome: Refused}
	engine, err := engineFor(policy, &request)
	if err != nil {
		return decision, err.Error()
	}
	defer engine.borrow()()
	choice := engine.Choose(columns, view.At, &request, seed)
	if choice.Node < 0 {
		decision.FailedPhase = choice.FailedPhase
		return decision, reasonAlone(wording{engine, choice}.refusal())
	}
	engine.record(&decision, choice, view)
	return decision, ""
}

// engineFor is an engine of the policy for a request that is valid.
func engineFor(policy policies.Policy, request *Request) (*Engine, error) {
	engine, err := NewEngine(policy)
	if err != nil {
		return nil, err
	}
	return engine, request.Validate()
}

// record writes down the result of the decision that was just made, and its inputs.
func (e *Engine) record(decision *Decision, choice Choice, view *view.View) {
	e.fill(decision, choice)
	rules := e.policy
	decision.Rules = &rules
	decision.Inputs, decision.Omitted = keeper{e, choice}.keep()
	if decision.Omitted > 0 && len(decision.Request.Apart) > 0 {
		decision.Request.Apart = slices.DeleteFunc(slices.Clone(decision.Request.Apart), func(one Apart) bool {
			_, kept := slices.BinarySearch(decision.Inputs.IDs, one.Node)
			return !kept
		})
	}
	if choice.Node < 0 {
		decision.Changes = remedies{e, choice}.forRefusal(view)
	}
}

// fill writes down the result of the decision.
func (e *Engine) fill(decision *Decision, choice Choice) {
	decision.FailedPhase, decision.Round = choice.FailedPhase, choice.Round
	if choice.Node < 0 {
		decision.Reason = wording{e, choice}.refusal()
		return
	}
	in := &e.input
	decision.Outcome, decision.Winner, decision.WinnerName = Placed, in.Columns.IDs[choice.Node], in.Name(choice.Node)
	if choice.Stays {
		decision.Outcome = Stay
	}
	decision.Margin, decision.Reason = choice.Margin, wording{e, choice}.win()
	decision.Pools = e.pools(choice.Node)
}
