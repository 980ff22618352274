package sim

import (
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/cluster"
)

// Words of plans that have ended.
var (
	planKinds  = []string{string(cluster.PlanDrain), string(cluster.PlanReturn), string(cluster.PlanRepair), string(cluster.PlanBalance)}
	planStates = []string{string(cluster.PlanDone), string(cluster.PlanFailed), string(cluster.PlanCancelled)}
	results    = []string{cluster.MoveMoved, cluster.MoveFailed, cluster.MoveStays, cluster.MoveLeft, cluster.MoveGone}
)

func (r *reader) planEntry(node *yaml.Node) planEntry {
	m := r.mapping(node, "a plan")
	entry := planEntry{line: node.Line}
	entry.plan.ID = m.name("id", "give the plan's ID")
	if entry.plan.ID != "" {
		m.what = "plan " + entry.plan.ID
	}
	entry.plan.Kind = cluster.PlanKind(m.word("kind", planKinds...))
	if entry.plan.Kind == "" && !m.has("kind") {
		r.refuse(node, "give what it was for: drain, return, repair or balance", "%s has no kind", m.what)
	}
	entry.plan.State, entry.plan.Cluster = cluster.PlanDone, cluster.DefaultCluster
	if state := m.word("state", planStates...); state != "" {
		entry.plan.State = cluster.PlanState(state)
	}
	if name := m.text("cluster"); name != "" {
		entry.plan.Cluster = name
	}
	entry.node, entry.plan.Policy, entry.plan.Unit = m.text("node"), m.text("policy"), m.text("unit")
	for name, into := range map[string]*float64{
		"before": &entry.plan.Before, "predicted": &entry.plan.Predicted, "observed": &entry.plan.Observed,
	} {
		if figure := m.number(name, -maxFigure); figure != nil {
			*into = *figure
		}
	}
	entry.endedAgo = m.ago("ended_ago")
	entry.createdAgo = max(m.ago("created_ago"), entry.endedAgo)
	entry.observedAgo = m.age("observed_ago")
	for _, one := range m.list("moves") {
		entry.moves = append(entry.moves, r.moveEntry(one, m.what))
	}
	m.close()
	return entry
}

func (r *reader) moveEntry(node *yaml.Node, of string) moveEntry {
	m := r.mapping(node, "a move of "+of)
	entry := moveEntry{line: node.Line, vm: m.name("vm", "give the VM's name"), from: m.name("from", "give the node that it left"), to: m.text("to")}
	entry.move.Result = m.word("result", results...)
	if entry.move.Result == "" {
		entry.move.Result = cluster.MoveMoved
	}
	entry.move.Stays = entry.move.Result == cluster.MoveStays
	if memory := m.size("memory"); memory != nil {
		entry.move.Memory = *memory
	}
	m.close()
	return entry
}

// ago is an age that is 0 if it is not given.
func (m *mapping) ago(name string) time.Duration {
	if age := m.age(name); age != nil {
		return *age
	}
	return 0
}

// addPast puts what the leader knows from before the scenario into the world: since when groups are broken, and the plans
// that have ended.
func (b *builder) addPast(s *Scenario) {
	for _, one := range s.broken {
		known := false
		for i := range b.state.Resources {
			if r := &b.state.Resources[i]; r.Kind == cluster.KindGroup && r.Name == one.group {
				r.BrokenSince, known = b.at.Add(-one.ago), true
			}
		}
		if !known {
			b.refuseLine(one.line, "name one of the groups of the estate", "there is no group %q", one.group)
		}
	}
	for i := range s.plans {
		b.addPlan(&s.plans[i])
	}
}

func (b *builder) addPlan(entry *planEntry) {
	plan := entry.plan
	plan.Caller, plan.CreatedAt, plan.EndedAt = caller, b.at.Add(-entry.createdAgo), b.at.Add(-entry.endedAgo)
	plan.UpdatedAt = plan.EndedAt
	if entry.observedAgo != nil {
		plan.ObservedAt = b.at.Add(-*entry.observedAgo)
	}
	plan.Node, plan.NodeName = b.nodeOf(entry.line, entry.node)
	for i := range entry.moves {
		one := &entry.moves[i]
		move := one.move
		move.VM, move.VMName = one.vm, one.vm
		if vm, err := b.vm(one.vm); err == nil { // one that is gone is called by its name
			move.VM = vm.ID
		}
		move.Source, move.SourceName = b.nodeOf(one.line, one.from)
		move.Target, move.TargetName = b.nodeOf(one.line, one.to)
		plan.Moves = append(plan.Moves, move)
	}
	b.plans = append(b.plans, plan)
}

// nodeOf finds a node that a plan names; none if it names none.
func (b *builder) nodeOf(line int, name string) (id, found string) {
	if name == "" {
		return "", ""
	}
	record, _, err := b.node(name)
	if err != nil {
		b.refuseLine(line, "name one of the nodes, or leave the plan out", "%v", err)
		return "", ""
	}
	return record.ID, record.Name
}
