package moving

import "berth/coordinator/model"

// Drained is what the drains of a node since its VMs last came back have moved away, as one plan. Plans are newest first.
func Drained(records Records, plans []model.Plan, node string) (drained model.Plan, was bool) {
	gone := map[string]bool{}
	for i := range plans {
		plan := &plans[i]
		if plan.Node != node {
			continue
		}
		if plan.Kind == model.PlanReturn && plan.State == model.PlanDone {
			break
		}
		if plan.Kind != model.PlanDrain {
			continue
		}
		if !was {
			drained, was = *plan, true
			drained.Moves = nil
		}
		for _, now := range Moves(records, *plan) {
			if now.State == model.MoveMoved && !gone[now.VM] {
				gone[now.VM] = true
				move := now.Move
				move.Result = model.MoveMoved
				drained.Moves = append(drained.Moves, move)
			}
		}
	}
	return drained, was
}
