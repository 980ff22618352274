package format

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/view"
)

// Export writes a scenario without steps from a live cluster: the estate, the figures and ages of its nodes as the view
// has them, what runs where, and the plans that have ended recently, newest first. In it the same request with the same
// seed gets the same decision, and the leader's loops see the same.
func Export(view *view.View, state estate.State, plans []model.Plan, seed uint64) ([]byte, error) {
	e := &exporter{
		view: view, state: &state, source: estate.Indexed(&state), vms: make(map[string]*model.VM, len(state.VMs)),
		told: make(map[string]bool),
	}
	for i := range state.VMs {
		e.vms[state.VMs[i].ID] = &state.VMs[i]
	}
	root := row{}
	root.put("format", Version)
	root.put("seed", strconv.FormatUint(seed, 10))
	root.put("at", view.At.UTC().Format(time.RFC3339Nano))
	if declared := estate.ExportNode(state, false, false); len(declared.Content) > 0 {
		root.node("estate", declared)
	}
	root.list("nodes", e.nodes())
	root.list("running", e.running())
	root.list("stopped", e.stopped())
	root.list("volumes", e.volumes())
	if broken := e.broken(); len(broken.content) > 0 {
		root.node("broken", &yaml.Node{Kind: yaml.MappingNode, Content: broken.content})
	}
	root.list("plans", e.plans(plans))
	ids := e.ids()
	if len(ids.content) > 0 {
		root.node("ids", &yaml.Node{Kind: yaml.MappingNode, Content: ids.content})
	}
	root.node("steps", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle})
	return root.document()
}

type exporter struct {
	view   *view.View
	state  *estate.State
	source estate.Source        // of the state
	vms    map[string]*model.VM // by ID
	told   map[string]bool      // by ID: VMs whose past has been written
}

func (e *exporter) nodes() []*yaml.Node {
	rows := make([]*yaml.Node, 0, e.view.Nodes.Len())
	for _, node := range e.view.Nodes.All() {
		var r row
		facts := &node.Facts
		r.put("name", node.Node.Name)
		if facts.Inventory {
			r.put("memory", exactly(facts.Memory))
			r.put("cpus", strconv.Itoa(facts.CPUs))
		}
		if facts.Telemetry {
			r.size("available", facts.Available)
			r.measure(facts)
			r.size("ksm_saved", facts.KSMSaved)
		}
		if node.Node.Maintenance {
			r.put("maintenance", "true")
			r.text("maintenance_reason", node.Node.MaintenanceReason)
		}
		switch facts.Liveness {
		case model.Up:
		case model.Suspect, model.Unreachable, model.Degraded:
			r.put("state", string(facts.Liveness))
			r.text("state_reason", facts.LivenessReason)
		default:
			r.put("state", Unheard)
		}
		if facts.Inventory {
			r.age("inventory_age", e.view.At.Sub(facts.InventoryAt))
		}
		if facts.Telemetry {
			r.age("telemetry_age", e.view.At.Sub(facts.TelemetryAt))
		}
		var unknown row
		for _, what := range r.around(facts) {
			unknown.content = append(unknown.content, word(what))
		}
		for _, one := range []struct {
			what  string
			known bool
		}{
			{"inventory", facts.Inventory},
			{"domains", facts.DomainsKnown},
			{"telemetry", facts.Telemetry},
			{"available", facts.Available != nil || !facts.Telemetry},
			{"load", facts.Load1 != nil || !facts.Telemetry},
		} {
			if !one.known {
				unknown.content = append(unknown.content, word(one.what))
			}
		}
		if len(unknown.content) > 0 {
			r.node("unknown", &yaml.Node{Kind: yaml.SequenceNode, Content: unknown.content})
		}
		rows = append(rows, r.flow())
	}
	return rows
}

func (e *exporter) running() []*yaml.Node {
	var rows []*yaml.Node
	for _, node := range e.view.Nodes.All() {
		for i := range node.Allocations {
			rows = append(rows, e.guest(node, &node.Allocations[i]))
		}
	}
	return rows
}

func (e *exporter) guest(node *view.NodeView, held *view.Allocation) *yaml.Node {
	var r row
	vm := e.vms[held.VM]
	if vm != nil {
		r.put("vm", vm.Name)
		r.put("node", node.Node.Name)
		if held.Memory != vm.Spec.Memory {
			r.put("memory", exactly(held.Memory))
		}
		if held.VCPUs != vm.Spec.VCPUs {
			r.put("vcpus", strconv.Itoa(held.VCPUs))
		}
	} else {
		name := held.Name
		if name == "" {
			name = held.VM
		}
		r.put("foreign", name)
		r.put("node", node.Node.Name)
		if name != held.VM {
			r.put("id", held.VM)
		}
		r.put("memory", exactly(held.Memory))
		r.put("vcpus", strconv.Itoa(held.VCPUs))
	}
	r.flag("in_flight", held.InFlight)
	if vm != nil {
		r.flag("stray", !held.InFlight && vm.Holder != node.Node.ID)
	}
	state, otherwise := model.DomainAbsent, model.DomainRunning
	if held.InFlight {
		otherwise = model.DomainAbsent
	}
	domain := node.Facts.Domain(held.VM)
	if domain != nil && (domain.State.Holds() || domain.State == model.DomainShutoff) {
		state = domain.State
	}
	if state != otherwise {
		r.put("state", string(state))
	}
	if state != model.DomainAbsent {
		r.size("resident", domain.Resident)
		r.number("cpu", domain.CPU)
		if domain.Balloon != nil && *domain.Balloon < domain.Memory {
			r.put("ballooned", exactly(domain.Memory-*domain.Balloon))
			if vm != nil && held.Memory < domain.Memory {
				r.put("most", exactly(domain.Memory))
			}
		}
	}
	r.flag("young", held.Young && node.Facts.Telemetry)
	if vm != nil && !e.told[vm.ID] {
		e.told[vm.ID] = true
		e.past(&r, vm, true)
	}
	return r.flow()
}

// past writes what a VM has from its last start, where a scenario without it would assume something else.
func (e *exporter) past(r *row, vm *model.VM, runs bool) {
	if runs {
		resolved, err := estate.Resolve(e.source, *vm)
		if now := key.ResidentsOf(key.WeightedOf(resolved.Customer)); err != nil || !slices.Equal(now, vm.Resident) {
			keys := make([]*yaml.Node, 0, len(vm.Resident))
			for _, shown := range vm.Resident {
				var one row
				one.put("name", shown.Name)
				one.number("value", &shown.Value)
				if shown.Class != model.CustomerKey {
					one.put("class", string(shown.Class))
				}
				keys = append(keys, one.flow())
			}
			r.node("customer_keys", &yaml.Node{Kind: yaml.SequenceNode, Content: keys})
		}
		if err != nil || resolved.Owner != vm.Owner {
			var owner row
			owner.text("customer", e.nameOf(vm.Owner.Customer))
			owner.text("billing_entity", e.nameOf(vm.Owner.BillingEntity))
			r.node("owner", owner.flow())
		}
	}
	if len(vm.Sticky) > 0 {
		keys := make([]*yaml.Node, 0, len(vm.Sticky))
		for _, copied := range vm.Sticky {
			var one row
			one.put("name", copied.Name)
			one.number("value", &copied.Value)
			one.number("weight", &copied.Weight)
			if copied.Class != model.StickyClass(copied.Name) {
				one.put("class", string(copied.Class))
			}
			keys = append(keys, one.flow())
		}
		r.node("sticky", &yaml.Node{Kind: yaml.SequenceNode, Content: keys})
	}
	if !vm.MovedAt.IsZero() {
		r.put("moved_ago", e.ago(vm.MovedAt))
	}
	if vm.Home != "" {
		home, _ := e.state.Node(vm.Home)
		r.text("home", home.Name)
	}
	if last, there := e.state.Node(vm.LastNode); there && !runs {
		r.text("last", last.Name)
	}
	r.text("cpu_model", vm.CPU)
	r.text("host_cpu", vm.PassedCPU)
}

// nameOf is the name of a resource by ID, or the ID of one that is gone.
func (e *exporter) nameOf(id string) string {
	if found, known := e.source.Resource(id); known {
		return found.Name
	}
	return id
}

// stopped are the VMs that do not run and have something from their last start.
func (e *exporter) stopped() []*yaml.Node {
	var rows []*yaml.Node
	for i := range e.state.VMs {
		vm := &e.state.VMs[i]
		if e.told[vm.ID] || len(vm.Sticky) == 0 && vm.Home == "" && vm.LastNode == "" && vm.MovedAt.IsZero() {
			continue
		}
		var r row
		r.put("vm", vm.Name)
		e.past(&r, vm, false)
		rows = append(rows, r.flow())
	}
	return rows
}

// broken tells since when the rules of groups do not hold.
func (e *exporter) broken() row {
	var r row
	for i := range e.state.Resources {
		if one := &e.state.Resources[i]; one.Kind == model.KindGroup && !one.BrokenSince.IsZero() {
			r.node(one.Name, plain(e.ago(one.BrokenSince)))
		}
	}
	return r
}

// The leader's loops look at plans that ended not longer ago than remembered, and at no more than maxRemembered of them.
const (
	remembered    = 24 * time.Hour
	maxRemembered = 200
)

// plans are the plans that have ended recently, and the last drain of each node that is in maintenance.
func (e *exporter) plans(plans []model.Plan) []*yaml.Node {
	var rows []*yaml.Node
	drained := make(map[string]bool)
	for i := range plans {
		plan := &plans[i]
		if plan.EndedAt.IsZero() || plan.State == model.PlanDiscarded {
			continue
		}
		node, there := e.state.Node(plan.Node)
		if plan.Node != "" && !there {
			continue
		}
		last := plan.Kind == model.PlanDrain && node.Maintenance && !drained[plan.Node]
		if !last && (e.view.At.Sub(plan.EndedAt) > remembered || len(rows) >= maxRemembered) {
			continue
		}
		if moves, known := e.moves(plan.Moves); known {
			drained[plan.Node] = drained[plan.Node] || last
			rows = append(rows, e.plan(plan, node.Name, moves))
		}
	}
	return rows
}

func (e *exporter) plan(plan *model.Plan, node string, moves []*yaml.Node) *yaml.Node {
	var r row
	r.put("id", plan.ID)
	r.put("kind", string(plan.Kind))
	if plan.State != model.PlanDone {
		r.put("state", string(plan.State))
	}
	if plan.Cluster != model.DefaultCluster {
		r.put("cluster", plan.Cluster)
	}
	r.text("node", node)
	r.text("policy", plan.Policy)
	if plan.Unit != "" {
		r.text("unit", plan.Unit)
		r.number("before", &plan.Before)
		r.number("predicted", &plan.Predicted)
	}
	if !plan.ObservedAt.IsZero() {
		r.number("observed", &plan.Observed)
		r.put("observed_ago", e.ago(plan.ObservedAt))
	}
	r.put("created_ago", e.ago(plan.CreatedAt))
	r.put("ended_ago", e.ago(plan.EndedAt))
	r.list("moves", moves)
	return r.flow()
}

// moves are the moves of a plan; known is false if one of them is about a node that no longer exists.
func (e *exporter) moves(moves []model.Move) (rows []*yaml.Node, known bool) {
	for i := range moves {
		move := &moves[i]
		if move.Source == "" { // of a domain that is not Berth's
			continue
		}
		source, there := e.state.Node(move.Source)
		target, also := e.state.Node(move.Target)
		if !there || move.Target != "" && !also {
			return nil, false
		}
		var r row
		r.put("vm", move.VMName)
		r.put("from", source.Name)
		r.text("to", target.Name)
		if move.Memory > 0 {
			r.put("memory", exactly(move.Memory))
		}
		if move.Result != model.MoveMoved {
			r.text("result", move.Result)
		}
		rows = append(rows, r.flow())
	}
	return rows, true
}

// ago is how long ago a moment is, as scenarios write it. A moment after that of the export counts as now.
func (e *exporter) ago(at time.Time) string { return max(e.view.At.Sub(at), 0).String() }

// ids are the IDs that differ from those which a scenario makes of the names. They matter: draws between equal nodes go by
// their IDs.
func (e *exporter) ids() row {
	var r row
	put := func(kind model.Kind, name, id, otherwise string) {
		if id != otherwise {
			r.put(string(kind)+"/"+name, id)
		}
	}
	for i := range e.state.Resources {
		one := &e.state.Resources[i]
		if one.Kind != model.KindCluster || one.Name != model.DefaultCluster {
			put(one.Kind, one.Name, one.ID, MadeID(one.Kind, one.Name))
		}
	}
	for _, node := range e.view.Nodes.All() {
		put(model.KindNode, node.Node.Name, node.Node.ID, node.Node.Name)
	}
	for i := range e.state.VMs {
		put(model.KindVM, e.state.VMs[i].Name, e.state.VMs[i].ID, MadeID(model.KindVM, e.state.VMs[i].Name))
	}
	return r
}
