package placement

import (
	"cmp"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/view"
)

// Place decides where the request goes: one pass through Filter, Order, Gate, Weigh and Select over the nodes of the
// request's cluster. The caller fills in ID, Caller, Operation and DryRun of the decision; At is the view's time.
//
// The same view, request, policy and seed give the same decision, whatever order the nodes had. The VM is left out of its
// current node's figures, and that node is a candidate: choosing it means Stay.
func Place(view *view.View, request Request, policy Policy, seed uint64) Decision {
	if request.Current != "" {
		view = view.Without(request.VM, request.Current)
	}
	columns := view.Columns(cmp.Or(request.Cluster, model.DefaultCluster))
	return place(columns, view.At, request, policy, seed, view)
}

// PlaceOn is Place on existing columns, which must leave the VM out of its current node. Without a view it cannot say which
// VM would have to move after a refusal.
func PlaceOn(columns *view.Columns, at time.Time, request Request, policy Policy, seed uint64) Decision {
	return place(columns, at, request, policy, seed, nil)
}

func place(
	columns *view.Columns, at time.Time, request Request, policy Policy, seed uint64, view *view.View,
) Decision {
	decision := Decision{At: at, Policy: policy.Name, Seed: seed, Request: request, Outcome: Refused}
	engine, err := NewEngine(policy)
	if err == nil {
		err = request.Validate()
	}
	if err != nil {
		decision.Reason = err.Error()
		return decision
	}
	engine.record(&decision, engine.Choose(columns, at, &request, seed), view)
	return decision
}

// record writes down the result of the decision that was just made, and its inputs.
func (e *Engine) record(decision *Decision, choice Choice, view *view.View) {
	e.fill(decision, choice)
	rules := e.policy
	decision.Rules = &rules
	decision.Inputs, decision.Omitted = e.keep(choice)
	if choice.Node < 0 {
		decision.Changes = e.changes(choice, view)
	}
}

// fill writes down the result of the decision.
func (e *Engine) fill(decision *Decision, choice Choice) {
	decision.FailedPhase, decision.Round = choice.FailedPhase, choice.Round
	if choice.Node < 0 {
		decision.Reason = e.refusalReason(choice)
		return
	}
	in := &e.input
	decision.Outcome, decision.Winner, decision.WinnerName = Placed, in.Columns.IDs[choice.Node], in.Name(choice.Node)
	if choice.Stays {
		decision.Outcome = Stay
	}
	decision.Margin, decision.Reason = choice.Margin, e.winReason(choice)
	decision.Pools = e.pools(choice.Node)
}
