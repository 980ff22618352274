package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
)

// lead makes the leader's pass over every cluster.
func (w *world) lead() error {
	w.passes++
	for _, name := range w.clusters() {
		if err := w.look(name); err != nil {
			return fmt.Errorf("pass over cluster %s: %w", name, err)
		}
	}
	return nil
}

// clusters are the names of those that have nodes.
func (w *world) clusters() []string {
	names := make(map[string]bool)
	for i := range w.state.Nodes {
		names[w.state.Nodes[i].Cluster] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// fleet is a cluster as the leader's loops see it.
func (w *world) fleet(name string) (*balance.Fleet, error) {
	fleet, err := estate.FleetOf(estate.Indexed(&w.state), w.view(), name, w.plansOf(name))
	if err != nil {
		return nil, err
	}
	if w.histories[name] == nil {
		w.histories[name] = &balance.History{}
	}
	fleet.History, fleet.Seed = w.histories[name], w.draw
	return fleet, nil
}

// look makes one pass over one cluster: it tells which groups are broken and what came of earlier moves, and carries out or
// proposes the move that is to be made now. A cluster whose VMs are on their way is left alone until they have come.
func (w *world) look(name string) error {
	fleet, err := w.fleet(name)
	if err != nil {
		return err
	}
	passed := moving.Pass(fleet, w.records())
	for i := range passed.Marks {
		w.mark(&passed.Marks[i])
	}
	for i := range passed.Observed {
		w.observed(&passed.Observed[i].Plan)
	}
	for i := range passed.Discarded {
		w.discarded(&passed.Discarded[i].Plan)
	}
	switch {
	case passed.Occupied:
		return nil
	case passed.Idle != "":
		w.rest(name, passed.Idle)
		return nil
	}
	delete(w.resting, name)
	if passed.Plan == nil {
		return nil
	}
	if passed.Plan.State == model.PlanRunning {
		p := w.pursue(*passed.Plan)
		p.chosen = &passed.Decision
		return w.carry()
	}
	w.propose(*passed.Plan, passed.Instead)
	return nil
}

// rest notes why a pass moved nothing, once until that changes.
func (w *world) rest(name, why string) {
	if w.resting[name] == why {
		return
	}
	w.resting[name] = why
	w.note(Entry{What: "idle", Of: "cluster/" + name, Why: why})
}

// observed keeps what came of a plan, and tells if that was not what had been predicted.
func (w *world) observed(plan *model.Plan) {
	*w.plan(plan.ID) = *plan
	if !moving.AsPredicted(plan) {
		w.note(Entry{What: "observed", Of: "plan/" + plan.ID, Plan: plan.ID, Why: fmt.Sprintf(
			"%s before, %s predicted, %s found (%s)", short(plan.Before), short(plan.Predicted), short(plan.Observed), plan.Unit)})
	}
}

// mark keeps that a group is broken, or that it holds again.
func (w *world) mark(one *moving.Mark) {
	at := slices.IndexFunc(w.state.Resources, func(r model.Resource) bool { return r.ID == one.Record.ID })
	w.state.Resources[at] = one.Record
	if one.Broken {
		w.note(Entry{What: "broken", Of: "group/" + one.Record.Name, Why: one.Why})
	} else {
		w.note(Entry{What: "holds", Of: "group/" + one.Record.Name})
	}
}

// broken are the groups whose rules do not hold now, by name, with why.
func (w *world) broken() map[string]string {
	facts := estate.Indexed(&w.state)
	broken := make(map[string]string)
	for _, name := range w.clusters() {
		for _, breach := range affinity.Breaches(estate.GroupsOf(facts, name), w.where(), w.nameOf) {
			broken[breach.GroupName] = breach.Text
		}
	}
	return broken
}

// where is the node of every VM that runs: the one that it is on its way to, if it is.
func (w *world) where() affinity.Where {
	where := make(affinity.Where)
	for i := range w.state.VMs {
		if vm := &w.state.VMs[i]; vm.Holder != "" {
			where[vm.ID] = vm.Holder
		}
	}
	for _, f := range w.flights {
		where[f.vm] = f.target
	}
	return where
}

// nameOf puts the ID of a VM or a node in words.
func (w *world) nameOf(id string) string {
	if vm := w.vmByID(id); vm != nil {
		return vm.Name
	}
	return w.nodeName(id)
}

// propose keeps a plan that somebody may apply. It may take the place of another one.
func (w *world) propose(plan model.Plan, instead *model.Plan) {
	if instead != nil {
		moving.Discard(instead, "another move is better now", w.at)
		w.discarded(instead)
	}
	made := w.keep(plan)
	for i := range made.Moves {
		move := &made.Moves[i]
		w.note(Entry{
			What: "proposed", VM: move.VMName, From: move.SourceName, To: move.TargetName, Plan: made.ID, Why: cmp.Or(move.Reason, made.Reason),
		})
	}
}

// discarded keeps that nobody wants a proposal any more.
func (w *world) discarded(plan *model.Plan) {
	*w.plan(plan.ID) = *plan
	w.note(Entry{What: "dropped", Of: "plan/" + plan.ID, Plan: plan.ID, Why: plan.Message})
}

// keep gives a plan its identity.
func (w *world) keep(plan model.Plan) *model.Plan {
	w.made++
	plan.ID, plan.CreatedAt, plan.UpdatedAt = fmt.Sprintf("plan-%d", w.made), w.at, w.at
	w.plans = slices.Insert(w.plans, 0, plan)
	return &w.plans[0]
}

// plan is the record of a plan that was kept.
func (w *world) plan(id string) *model.Plan {
	return &w.plans[slices.IndexFunc(w.plans, func(p model.Plan) bool { return p.ID == id })]
}

// plansOf are the plans of a cluster, newest first.
func (w *world) plansOf(name string) []model.Plan {
	var plans []model.Plan
	for i := range w.plans {
		if w.plans[i].Cluster == name {
			plans = append(plans, w.plans[i])
		}
	}
	return plans
}
