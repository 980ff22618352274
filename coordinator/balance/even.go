package balance

import (
	"fmt"

	"berth/coordinator/cluster"
	"berth/shared/units"
)

// Even plans all the moves that would even the cluster out, on planned state, at most so many. The engine is asked for each,
// and each can be made when those before it have been: so much memory is free by then. No VM moves twice. The plan has no ID,
// state, caller or times. One without moves says in its reason why.
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
	case fleet.Balancer.Nothing():
		plan.Reason = fmt.Sprintf("policy %s has no balancer", fleet.Policy.Name)
		return plan
	}
	balancer, s := g.situation()
	propose := balancer.Improve
	if propose == nil {
		propose = balancer.Propose
	}
	plan.Unit, plan.Before = balancer.Unit, balancer.Figure(s)
	plan.Predicted = plan.Before
	var memory units.Bytes
	for len(plan.Moves) < most {
		moved := false
		why := propose(s, func(p Proposal) bool {
			_, target, chosen := g.settle(p, g.Seed())
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
			plan.Reason = why
			break
		}
	}
	if len(plan.Moves) == 0 {
		return plan
	}
	plan.Predicted = balancer.Figure(s)
	plan.Reason = fmt.Sprintf("%s, %s: from %.3f to %.3f (%s)", counted(len(plan.Moves), "move"), memory, plan.Before, plan.Predicted, balancer.Unit)
	return plan
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
