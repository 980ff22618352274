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
func (l *leader) lead() error {
	l.passes++
	for _, name := range l.clusters() {
		if err := l.look(name); err != nil {
			return fmt.Errorf("pass over cluster %s: %w", name, err)
		}
	}
	return nil
}

// clusters are the names of those that have nodes.
func (s *site) clusters() []string {
	names := make(map[string]bool)
	for i := range s.state.Nodes {
		names[s.state.Nodes[i].Cluster] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// fleet is a cluster as the leader's loops see it.
func (l *leader) fleet(name string) (*balance.Fleet, error) {
	fleet, err := estate.FleetOf(estate.Indexed(&l.state), l.view(), name, l.plansOf(name))
	if err != nil {
		return nil, err
	}
	if l.histories[name] == nil {
		l.histories[name] = &balance.History{}
	}
	fleet.History, fleet.Seed = l.histories[name], l.draw
	return fleet, nil
}

// look makes one pass over one cluster: it tells which groups are broken and what came of earlier moves, and carries out or
// proposes the move that is to be made now. A cluster whose VMs are on their way is left alone until they have come.
func (l *leader) look(name string) error {
	fleet, err := l.fleet(name)
	if err != nil {
		return err
	}
	passed := moving.Pass(fleet, l.records())
	for i := range passed.Marks {
		l.mark(&passed.Marks[i])
	}
	for _, one := range passed.Both {
		l.note(Entry{What: "both", Of: "vm/" + one.Name, Why: one.Why})
	}
	for i := range passed.Observed {
		l.observed(&passed.Observed[i].Plan)
	}
	for i := range passed.Discarded {
		l.discarded(&passed.Discarded[i].Plan)
	}
	switch {
	case passed.Occupied:
		return nil
	case passed.Idle != "":
		l.rest(name, passed.Idle)
		return nil
	}
	delete(l.resting, name)
	if passed.Plan == nil {
		return nil
	}
	if passed.Plan.State == model.PlanRunning {
		p := l.pursue(*passed.Plan)
		p.chosen = &passed.Decision
		return l.carry()
	}
	l.propose(*passed.Plan, passed.Instead)
	return nil
}

// rest notes why a pass moved nothing, once until that changes.
func (l *leader) rest(name, why string) {
	if l.resting[name] == why {
		return
	}
	l.resting[name] = why
	l.note(Entry{What: "idle", Of: "cluster/" + name, Why: why})
}

// observed keeps what came of a plan, and tells if that was not what had been predicted.
func (l *leader) observed(plan *model.Plan) {
	*l.plan(plan.ID) = *plan
	if !moving.AsPredicted(plan) {
		l.note(Entry{What: "observed", Of: "plan/" + plan.ID, Plan: plan.ID, Why: fmt.Sprintf(
			"%s before, %s predicted, %s found (%s)", short(plan.Before), short(plan.Predicted), short(plan.Observed), plan.Unit)})
	}
}

// mark keeps that a group is broken, or that it holds again.
func (l *leader) mark(one *moving.Mark) {
	at := slices.IndexFunc(l.state.Resources, func(r model.Resource) bool { return r.ID == one.Record.ID })
	l.state.Resources[at] = one.Record
	if one.Broken {
		l.note(Entry{What: "broken", Of: "group/" + one.Record.Name, Why: one.Why})
	} else {
		l.note(Entry{What: "holds", Of: "group/" + one.Record.Name})
	}
}

// broken are the groups whose rules do not hold now, by name, with why.
func (l *leader) broken() map[string]string {
	facts := estate.Indexed(&l.state)
	broken := make(map[string]string)
	for _, name := range l.clusters() {
		for _, breach := range affinity.Breaches(estate.GroupsOf(facts, name), l.where(), l.nameOf) {
			broken[breach.GroupName] = breach.Text
		}
	}
	return broken
}

// where is the node of every VM that runs: the one that it is on its way to, if it is.
func (t *traffic) where() affinity.Where {
	where := make(affinity.Where)
	for i := range t.state.VMs {
		if vm := &t.state.VMs[i]; vm.Holder != "" {
			where[vm.ID] = vm.Holder
		}
	}
	for _, f := range t.flights {
		where[f.vm] = f.target
	}
	return where
}

// nameOf puts the ID of a VM or a node in words.
func (s *site) nameOf(id string) string {
	if vm := s.vmByID(id); vm != nil {
		return vm.Name
	}
	return s.nodeName(id)
}

// propose keeps a plan that somebody may apply. It may take the place of another one.
func (l *leader) propose(plan model.Plan, instead *model.Plan) {
	if instead != nil {
		moving.Discard(instead, "another move is better now", l.at)
		l.discarded(instead)
	}
	made := l.keep(plan)
	for i := range made.Moves {
		move := &made.Moves[i]
		l.note(Entry{
			What: "proposed", VM: move.VMName, From: move.SourceName, To: move.TargetName, Plan: made.ID, Why: cmp.Or(move.Reason, made.Reason),
		})
	}
}

// discarded keeps that nobody wants a proposal any more.
func (l *leader) discarded(plan *model.Plan) {
	*l.plan(plan.ID) = *plan
	l.note(Entry{What: "dropped", Of: "plan/" + plan.ID, Plan: plan.ID, Why: plan.Message})
}

// keep gives a plan its identity.
func (l *leader) keep(plan model.Plan) *model.Plan {
	l.made++
	plan.ID, plan.CreatedAt, plan.UpdatedAt = fmt.Sprintf("plan-%d", l.made), l.at, l.at
	l.plans = slices.Insert(l.plans, 0, plan)
	return &l.plans[0]
}

// plan is the record of a plan that was kept.
func (l *leader) plan(id string) *model.Plan {
	return &l.plans[slices.IndexFunc(l.plans, func(p model.Plan) bool { return p.ID == id })]
}

// plansOf are the plans of a cluster, newest first.
func (l *leader) plansOf(name string) []model.Plan {
	var plans []model.Plan
	for i := range l.plans {
		if l.plans[i].Cluster == name {
			plans = append(plans, l.plans[i])
		}
	}
	return plans
}
