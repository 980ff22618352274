package balance

import (
	"fmt"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// Even plans all moves that would even the cluster out, on planned state, up to a number of moves. The engine is asked for
// each move. Each can be made once those before it have been made, because the memory is free by then. No VM moves twice. The
// plan has no ID, state, caller or times. A plan without moves has the reason.
//
// Where the policy wants customers' VMs spread, the moves that do so come first. Without a balancer there are no others. A
// move of the balancer can make another move of that kind possible: it frees room on a node, or leaves fewer of a customer's
// VMs there. So the two take turns until the balancer finds nothing.
//
// It ignores the cluster's mode and window, because somebody asked for the plan. A second plan after all moves of the first
// finds nothing, except for VMs that rest after a move.
func Even(fleet *Fleet, most int) model.Plan {
	plan := model.Plan{Kind: model.PlanBalance, Cluster: fleet.Cluster, Policy: fleet.Policy.Name}
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
		plan.Unit, figure = DispersalUnit, dispersal{g}.unevenness
	}
	plan.Before = figure(s)
	plan.Predicted = plan.Before
	var memory units.Bytes
	// each plans moves until it finds none, and returns why it finds none.
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
	for {
		plan.Reason = ""
		if fleet.DisperseAccounts {
			plan.Reason = each(dispersal{g}.disperse, dispersal{g}.part)
		}
		dispersed := len(plan.Moves)
		switch {
		case balancer.Improve != nil:
			plan.Reason = joined(plan.Reason, each(balancer.Improve, g.askEngine))
		case balancer.Propose != nil:
			plan.Reason = joined(plan.Reason, each(balancer.Propose, g.askEngine))
		case plan.Reason == "":
			plan.Reason = allSpread
		}
		if !fleet.DisperseAccounts || len(plan.Moves) == dispersed {
			break
		}
	}
	if len(plan.Moves) == 0 {
		return plan
	}
	plan.Predicted = figure(s)
	plan.Reason = fmt.Sprintf(
		"%s, %s: from %.3f to %.3f (%s)", counted(len(plan.Moves), "move"), memory, plan.Before, plan.Predicted, plan.Unit,
	)
	return plan
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
