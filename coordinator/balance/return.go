package balance

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/view"
)

// Return plans how the VMs that a drain moved away come back. A VM comes back if the engine finds the node better than the
// VM's present one, or as good. The others stay, with the reason. The node counts as out of maintenance.
func Return(fleet *Fleet, drained *model.Plan) model.Plan {
	plan := model.Plan{Kind: model.PlanReturn, Cluster: fleet.Cluster, Node: drained.Node, NodeName: drained.NodeName}
	g, err := survey(fleet)
	if err != nil {
		plan.Reason = err.Error()
		return plan
	}
	home, found := g.columns.Index(drained.Node)
	if !found {
		plan.Reason = fmt.Sprintf("node %s is not in cluster %s", drained.NodeName, fleet.Cluster)
		return plan
	}
	if g.columns.Standing[home] == view.StandsInMaintenance {
		g.columns.Standing = slices.Clone(g.columns.Standing)
		g.columns.Standing[home] = view.Stands
		g.columns.Derive()
	}
	r := returning{ground: g, home: home}
	for i := range drained.Moves {
		r.consider(&drained.Moves[i])
	}
	slices.SortFunc(r.coming, r.larger)
	for len(r.coming) > 0 {
		r.place(r.coming[0])
	}
	plan.Moves, plan.Reason = r.moves, r.reason()
	return plan
}

// returning is a return while it is planned.
type returning struct {
	*ground
	home   int
	coming []int // VMs that have not been looked at yet
	moves  []model.Move
}

func (r *returning) stays(vm int, why string) { r.moves = append(r.moves, r.staying(vm, why)) }

// consider finds out whether a VM of the drain may come back at all.
func (r *returning) consider(move *model.Move) {
	if move.Stays || move.Result != "" && move.Result != model.MoveMoved {
		return
	}
	vm, known := r.index[move.VM]
	switch {
	case !known:
		r.moves = append(r.moves, model.Move{
			VM: move.VM, VMName: move.VMName, Source: move.Target, SourceName: move.TargetName, Memory: move.Memory,
			Reason: "it does not run any more", Stays: true,
		})
	case r.at[vm] == r.home || slices.Contains(r.coming, vm):
	case r.VMs[vm].Migration == model.MigrateNever:
		r.stays(vm, r.immovable(vm))
	case r.VMs[vm].Busy != "":
		r.stays(vm, r.VMs[vm].Busy)
	case r.at[vm] < 0:
		r.stays(vm, "it is on a node of another cluster")
	default:
		r.coming = append(r.coming, vm)
	}
}

// place asks the engine about a VM and the VMs that come along with it.
func (r *returning) place(vm int) {
	unit := []int{vm}
	for _, mate := range r.mates(vm) {
		if slices.Contains(r.coming, mate) {
			unit = append(unit, mate)
		}
	}
	r.coming = slices.DeleteFunc(r.coming, func(one int) bool { return slices.Contains(unit, one) })
	request, err := r.ask(vm, placement.ForReturn)
	if err != nil {
		r.stays(vm, err.Error())
		return
	}
	request.Among, request.Unit = []string{r.columns.IDs[r.home]}, r.unit(unit[1:])
	seed := r.Seed()
	choice := r.choose(r.engine, vm, &request, seed)
	if choice.Stays && choice.RunnerUp == r.home && choice.Margin == 0 && !choice.Behind || choice.Node == r.home {
		for _, one := range unit {
			r.moves = append(r.moves, r.planned(one, r.home, ""))
			r.move(one, r.home)
		}
		return
	}
	why := fmt.Sprintf("it is better where it is, on %s", r.name(r.VMs[vm].Node))
	if choice.RunnerUp != r.home {
		request.Leave = true
		why = r.decide(vm, request, r.Policy, seed).Reason
	}
	for _, one := range unit {
		r.stays(one, why)
	}
}

// reason summarises the plan.
func (r *returning) reason() string {
	d := draining{ground: r.ground, moves: r.moves}
	if len(r.moves) == 0 {
		return "no VM that the drain moved away is elsewhere"
	}
	return d.reason()
}
