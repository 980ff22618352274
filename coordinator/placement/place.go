package placement

import (
	"cmp"
	"time"

	"berth/coordinator/cluster"
)

// Place decides where the request goes: one pass through Filter, Order, Gate, Weigh and Select over the nodes of the
// request's cluster. ID, Caller, Operation and DryRun of the decision are the caller's to fill in; At is the view's.
//
// The same view, request, policy and seed give the same decision, whatever the order of the nodes was when the view was
// made. The VM is left out of its current node's figures, and that node is a candidate: chosen, it means Stay.
func Place(view *cluster.View, request Request, policy Policy, seed uint64) Decision {
	if request.Current != "" {
		view = view.Without(request.VM, request.Current)
	}
	columns := view.Columns(cmp.Or(request.Cluster, cluster.DefaultCluster))
	return place(columns, view.At, request, policy, seed, view)
}

// PlaceOn is Place on columns that are there already and leave the VM out of its current node. Without a view it cannot
// tell of a refusal which VM would have to move.
func PlaceOn(columns *cluster.Columns, at time.Time, request Request, policy Policy, seed uint64) Decision {
	return place(columns, at, request, policy, seed, nil)
}

func place(
	columns *cluster.Columns, at time.Time, request Request, policy Policy, seed uint64, view *cluster.View,
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

// record writes down what came of the decision that was just made, and what it was made on.
func (e *Engine) record(decision *Decision, choice Choice, view *cluster.View) {
	e.fill(decision, choice)
	rules := e.policy
	decision.Rules = &rules
	decision.Inputs, decision.Omitted = e.keep(choice)
	if choice.Node < 0 {
		decision.Changes = e.changes(choice, view)
	}
}

// fill writes down what came of the decision.
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
