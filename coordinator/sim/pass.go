package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
)

// loops is who asks for the moves that the leader's loops find.
const loops = "berth"

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

// occupied tells whether a migration runs in a cluster, or a plan.
func (w *world) occupied(name string) bool {
	for _, f := range w.flights {
		if w.clusterOf(f.source) == name || w.clusterOf(f.target) == name {
			return true
		}
	}
	return slices.ContainsFunc(w.pursuits, func(p *pursuit) bool { return w.plan(p.id).Cluster == name })
}

func (w *world) clusterOf(node string) string {
	record, _ := w.state.Node(node)
	return record.Cluster
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
	w.mark(fleet.Groups, affinity.Breaches(fleet.Groups, w.where(), w.nameOf))
	w.observe(fleet)
	if w.occupied(name) {
		return nil
	}
	fleet.Recent = w.plansOf(name)
	found := balance.Pass(fleet)
	w.tidy(name, &found)
	if found.Kind == "" {
		w.rest(name, found.Idle)
		return nil
	}
	delete(w.resting, name)
	mode := fleet.Settings.Balancing
	if found.Kind == cluster.PlanRepair {
		mode = fleet.Settings.Enforcement
	}
	plan := planOf(fleet, &found)
	switch mode {
	case cluster.Automatic:
		plan.State = cluster.PlanRunning
		p := w.pursue(fleet, plan)
		p.chosen = &found.Decision
		return w.carry()
	case cluster.Manual:
		plan.State = cluster.PlanProposed
		w.propose(plan)
	case cluster.Off:
	}
	return nil
}

// planOf makes a plan of what a pass found.
func planOf(fleet *balance.Fleet, found *balance.Found) cluster.Plan {
	return cluster.Plan{
		Kind: found.Kind, Cluster: fleet.Cluster, Group: found.Group, Policy: fleet.Policy.Name, Caller: loops, Reason: found.Reason,
		Moves: found.Moves, Unit: found.Unit, Before: found.Before, Predicted: found.Predicted,
	}
}

// rest notes why a pass moved nothing, once until that changes.
func (w *world) rest(name, why string) {
	if w.resting[name] == why {
		return
	}
	w.resting[name] = why
	w.note(Entry{What: "idle", Of: "cluster/" + name, Why: why})
}

// observe compares what ended balance plans predicted with what came of them.
func (w *world) observe(fleet *balance.Fleet) {
	for i := range w.plans {
		plan := &w.plans[i]
		if plan.Cluster != fleet.Cluster || plan.Kind != cluster.PlanBalance || plan.EndedAt.IsZero() || !plan.ObservedAt.IsZero() {
			continue
		}
		observed, known := balance.Observe(fleet, plan)
		if !known {
			continue
		}
		plan.Observed, plan.ObservedAt = observed, w.at
		if !near(observed, plan.Predicted) {
			w.note(Entry{What: "observed", Of: "plan/" + plan.ID, Plan: plan.ID, Why: fmt.Sprintf(
				"%s before, %s predicted, %s found (%s)", short(plan.Before), short(plan.Predicted), short(observed), plan.Unit)})
		}
	}
}

// mark writes down since when groups are broken, and that they hold again. The fleet's groups are told, too.
func (w *world) mark(groups []cluster.Group, breaches []affinity.Breach) {
	broken := make(map[string][]string)
	for i := range breaches {
		broken[breaches[i].Group] = append(broken[breaches[i].Group], breaches[i].Text)
	}
	for i := range groups {
		group := &groups[i]
		at := slices.IndexFunc(w.state.Resources, func(r cluster.Resource) bool { return r.ID == group.ID })
		if at < 0 {
			continue
		}
		record := &w.state.Resources[at]
		switch why := broken[group.ID]; {
		case len(why) > 0 && record.BrokenSince.IsZero():
			record.BrokenSince, group.BrokenSince = w.at, w.at
			w.note(Entry{What: "broken", Of: "group/" + group.Name, Why: strings.Join(why, "; ")})
		case len(why) == 0 && !record.BrokenSince.IsZero():
			record.BrokenSince, group.BrokenSince = time.Time{}, time.Time{}
			w.note(Entry{What: "holds", Of: "group/" + group.Name})
		}
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

// propose keeps one proposed plan of a kind and cluster: a new one takes its place when it would do something else.
func (w *world) propose(plan cluster.Plan) {
	for i := range w.plans {
		if old := &w.plans[i]; old.State == cluster.PlanProposed && old.Kind == plan.Kind && old.Cluster == plan.Cluster {
			if w.alike(old, &plan) {
				return
			}
			w.discard(old, "another move is better now")
		}
	}
	made := w.keep(plan)
	for i := range made.Moves {
		move := &made.Moves[i]
		w.note(Entry{
			What: "proposed", VM: move.VMName, From: move.SourceName, To: move.TargetName, Plan: made.ID, Why: cmp.Or(move.Reason, made.Reason),
		})
	}
}

// alike tells whether a proposal does what the plan found now does, to nodes that still take VMs: the same VMs, or as many from
// the same nodes to the same effect. Among equal targets the engine draws: that is no reason for another proposal.
func (w *world) alike(old, found *cluster.Plan) bool {
	sameVM := func(a, b cluster.Move) bool { return a.VM == b.VM && a.Source == b.Source }
	sameSource := func(a, b cluster.Move) bool { return a.Source == b.Source }
	if !slices.EqualFunc(old.Moves, found.Moves, sameVM) && !(old.Group == found.Group &&
		slices.EqualFunc(old.Moves, found.Moves, sameSource) && near(old.Before, found.Before) && near(old.Predicted, found.Predicted)) {
		return false
	}
	return !slices.ContainsFunc(old.Moves, func(m cluster.Move) bool {
		record, known := w.state.Node(m.Target)
		return !known || record.Maintenance || w.nodes[m.Target].facts.Liveness != cluster.Up
	})
}

// tidy discards proposals that nobody can want any more: their VMs are elsewhere by now, or nothing is to be moved.
func (w *world) tidy(name string, found *balance.Found) {
	for i := range w.plans {
		plan := &w.plans[i]
		if plan.State != cluster.PlanProposed || plan.Cluster != name {
			continue
		}
		elsewhere := slices.ContainsFunc(plan.Moves, func(m cluster.Move) bool {
			vm := w.vmByID(m.VM)
			return vm == nil || vm.Holder != m.Source
		})
		switch {
		case elsewhere:
			w.discard(plan, "its VMs are no longer where they were")
		case found.Kind == "":
			w.discard(plan, "no longer needed")
		}
	}
}

func (w *world) discard(plan *cluster.Plan, why string) {
	plan.State, plan.EndedAt, plan.UpdatedAt, plan.Message = cluster.PlanDiscarded, w.at, w.at, why
	w.note(Entry{What: "dropped", Of: "plan/" + plan.ID, Plan: plan.ID, Why: why})
}

// keep gives a plan its identity.
func (w *world) keep(plan cluster.Plan) *cluster.Plan {
	w.made++
	plan.ID, plan.CreatedAt, plan.UpdatedAt = fmt.Sprintf("plan-%d", w.made), w.at, w.at
	w.plans = slices.Insert(w.plans, 0, plan)
	return &w.plans[0]
}

// plan is the record of a plan that was kept.
func (w *world) plan(id string) *cluster.Plan {
	return &w.plans[slices.IndexFunc(w.plans, func(p cluster.Plan) bool { return p.ID == id })]
}

// plansOf are the plans of a cluster, newest first.
func (w *world) plansOf(name string) []cluster.Plan {
	var plans []cluster.Plan
	for i := range w.plans {
		if w.plans[i].Cluster == name {
			plans = append(plans, w.plans[i])
		}
	}
	return plans
}
