package balance

import (
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// Even plans all the moves that would even the cluster out, on planned state, at most so many. The engine is asked for each,
// and each can be made when those before it have been: so much memory is free by then. No VM moves twice. The plan has no ID,
// state, caller or times. One without moves says in its reason why.
//
// Where the policy wants customers' VMs spread, the moves that spread them come first; without a balancer they are all.
//
// It looks neither at the cluster's mode nor at its window: somebody asked for the plan. A second plan after all moves of the
// first finds nothing, but for VMs that rest from having been moved.
func Even(fleet *Fleet, most int) cluster.Plan {
	plan := cluster.Plan{Kind: cluster.PlanBalance, Cluster: fleet.Cluster, Policy: fleet.Policy.Name}
	g, err := survey(fleet)
	switch {
	case err != nil:
		plan.Reason = err.Error()
		return plan
	case fleet.Balancer.Nothing() && !fleet.DisperseAccounts:
		plan.Reason = fmt.Sprintf("policy %s has no balancer", fleet.Policy.Name)
		return plan
	}
	balancer, s := g.situation()
	figure := balancer.Figure
	if plan.Unit = balancer.Unit; fleet.Balancer.Nothing() {
		plan.Unit, figure = DispersalUnit, g.unevenness
	}
	plan.Before = figure(s)
	plan.Predicted = plan.Before
	var memory units.Bytes
	// each carries moves out in planned state until none is found, and returns why none is.
	each := func(propose proposer, ask func(p Proposal, seed uint64) (placement.Request, int, bool)) string {
		for len(plan.Moves) < most {
			moved := false
			why := propose(s, func(p Proposal) bool {
				_, target, chosen := ask(p, g.Seed())
				if !chosen {
					return false
				}
				plan.Moves = append(plan.Moves, g.planned(p.VM, target, p.Reason(target)))
				memory += g.VMs[p.VM].Memory
				g.move(p.VM, target)
				s.move(p.VM, target)
				moved = true
				return true
			})
			if !moved {
				return why
			}
		}
		return ""
	}
	if fleet.DisperseAccounts {
		plan.Reason = each(g.disperse, g.part)
	}
	switch {
	case balancer.Improve != nil:
		plan.Reason = joined(plan.Reason, each(balancer.Improve, g.settle))
	case balancer.Propose != nil:
		plan.Reason = joined(plan.Reason, each(balancer.Propose, g.settle))
	case plan.Reason == "":
		plan.Reason = allSpread
	}
	if len(plan.Moves) == 0 {
		return plan
	}
	plan.Predicted = figure(s)
	plan.Reason = fmt.Sprintf("%s, %s: from %.3f to %.3f (%s)", counted(len(plan.Moves), "move"), memory, plan.Before, plan.Predicted, plan.Unit)
	return plan
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
