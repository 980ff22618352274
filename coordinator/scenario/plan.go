package scenario

import (
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/strictyaml"
)

// Words of plans that have ended.
var (
	planKinds  = []string{string(model.PlanDrain), string(model.PlanReturn), string(model.PlanRepair), string(model.PlanBalance)}
	planStates = []string{string(model.PlanDone), string(model.PlanFailed), string(model.PlanCancelled)}
	results    = []string{model.MoveMoved, model.MoveFailed, model.MoveStays, model.MoveLeft, model.MoveGone}
)

func (r *reader) planEntry(node *yaml.Node) planEntry {
	m := r.Mapping(node, "a plan")
	entry := planEntry{line: node.Line}
	entry.plan.ID = m.Name("id", "give the plan's ID")
	if entry.plan.ID != "" {
		m.What = "plan " + entry.plan.ID
	}
	entry.plan.Kind = model.PlanKind(m.Word("kind", planKinds...))
	if entry.plan.Kind == "" && !m.Has("kind") {
		r.Refuse(node, "give what it was for: drain, return, repair or balance", "%s has no kind", m.What)
	}
	entry.plan.State, entry.plan.Cluster = model.PlanDone, model.DefaultCluster
	if state := m.Word("state", planStates...); state != "" {
		entry.plan.State = model.PlanState(state)
	}
	if name := m.Text("cluster"); name != "" {
		entry.plan.Cluster = name
	}
	entry.node, entry.plan.Policy, entry.plan.Unit = m.Text("node"), m.Text("policy"), m.Text("unit")
	for name, into := range map[string]*float64{
		"before": &entry.plan.Before, "predicted": &entry.plan.Predicted, "observed": &entry.plan.Observed,
	} {
		if figure := m.Number(name, -strictyaml.MaxFigure); figure != nil {
			*into = *figure
		}
	}
	entry.endedAgo = agoOf(m, "ended_ago")
	entry.createdAgo = max(agoOf(m, "created_ago"), entry.endedAgo)
	entry.observedAgo = m.Age("observed_ago")
	for _, one := range m.List("moves") {
		entry.moves = append(entry.moves, r.moveEntry(one, m.What))
	}
	m.Close()
	return entry
}

func (r *reader) moveEntry(node *yaml.Node, of string) moveEntry {
	m := r.Mapping(node, "a move of "+of)
	entry := moveEntry{
		line: node.Line, vm: m.Name("vm", "give the VM's name"), from: m.Name("from", "give the node that it left"), to: m.Text("to"),
	}
	entry.move.Result = m.Word("result", results...)
	if entry.move.Result == "" {
		entry.move.Result = model.MoveMoved
	}
	entry.move.Stays = entry.move.Result == model.MoveStays
	if memory := m.Size("memory"); memory != nil {
		entry.move.Memory = *memory
	}
	m.Close()
	return entry
}

// ago is an age that is 0 if it is not given.
func agoOf(m *strictyaml.Mapping, name string) time.Duration {
	if age := m.Age(name); age != nil {
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
			if r := &b.state.Resources[i]; r.Kind == model.KindGroup && r.Name == one.group {
				r.BrokenSince, known = b.at.Add(-one.ago), true
			}
		}
		if !known {
			b.RefuseLine(one.line, "name one of the groups of the estate", "there is no group %q", one.group)
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
		b.RefuseLine(line, "name one of the nodes, or leave the plan out", "%v", err)
		return "", ""
	}
	return record.ID, record.Name
}
