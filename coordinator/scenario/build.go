package scenario

import (
	"cmp"
	"slices"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
	"berth/coordinator/strictyaml"
	"berth/shared/units"
)

// builder puts the world of a scenario together and collects what does not go together.
type builder struct {
	*world
	reader
	source  estate.Source // of the state
	ids     map[string]string
	started map[string]bool // VMs, by ID, of which it is known what they show to others
}

// world is the scenario before its first step.
func (s *Scenario) world() (*world, []schema.Problem) {
	b := &builder{
		world: &world{s.leader()},
		ids:   make(map[string]string, len(s.ids)), started: make(map[string]bool, len(s.running)),
		reader: reader{strictyaml.Reader{File: s.Name}},
	}
	for _, one := range s.ids {
		if _, _, ok := strings.Cut(one.subject, "/"); !ok {
			b.RefuseLine(one.line, "write KIND/NAME: ID, for instance node/hv1: n1", "ids names %q", one.subject)
		}
		b.ids[one.subject] = one.id
	}
	b.addNodes(s.nodes)
	b.become(b.state)
	b.addEstate(s)
	for i := range s.volumes {
		b.addVolume(&s.volumes[i])
	}
	b.source = estate.Indexed(&b.state)
	for i := range s.running {
		b.addGuest(&s.running[i])
	}
	for i := range s.stopped {
		b.addStopped(&s.stopped[i])
	}
	b.addPast(s)
	for i := range s.nodes {
		b.fillAvailable(&s.nodes[i])
	}
	b.checkIDs(s.ids)
	return b.world, b.Problems
}

// leader is the leader of an empty site, as the scenario's time goes before its first step.
func (s *Scenario) leader() leader {
	empty := site{at: s.At, still: s.still(), nodes: make(map[string]*node, len(s.nodes))}
	return leader{
		traffic: traffic{journal: journal{site: empty, began: s.At}, tried: make(map[string][]operation.Operation)},
		seed:    s.Seed, nextPass: s.At.Add(s.Interval), interval: s.Interval, bandwidth: s.Bandwidth,
		histories: make(map[string]*balance.History), resting: make(map[string]string),
	}
}

// still tells that no step lets time pass.
func (s *Scenario) still() bool {
	return !slices.ContainsFunc(s.Steps, func(step Step) bool {
		_, passes := step.action.(*pass)
		return passes || step.at != nil
	})
}

func (b *builder) addNodes(entries []nodeEntry) {
	seen := make(map[string]int)
	for i := range entries {
		entry := &entries[i]
		if err := model.ValidateName("node", entry.name); err != nil {
			b.RefuseLine(entry.line, "choose another name", "%v", err)
			continue
		}
		if first := seen[entry.name]; first > 0 {
			b.RefuseLine(entry.line, "leave one out", "node %s is there twice, first on line %d", entry.name, first)
			continue
		}
		seen[entry.name] = entry.line
		record := model.Node{ID: b.idOf("node", entry.name, entry.name), Name: entry.name, Cluster: model.DefaultCluster}
		if entry.maintenance != nil {
			record.Maintenance, record.MaintenanceReason = *entry.maintenance, entry.maintenanceReason
		}
		if b.nodes[record.ID] != nil {
			b.RefuseLine(entry.line, "give each node an ID of its own", "node %s has the ID %s of another node", entry.name, record.ID)
			continue
		}
		b.state.Nodes = append(b.state.Nodes, record)
		n := &node{anyNetwork: true, facts: model.NodeFacts{
			PoolsKnown: true, NetworksKnown: true,
			Liveness: model.Up, Inventory: true, InventoryAt: b.at, DomainsKnown: true, Telemetry: true, TelemetryAt: b.at,
			Load1: new(float64),
		}}
		n.apply(b.at, &entry.figures)
		b.nodes[record.ID] = n
	}
}

// addEstate declares what the scenario's estate has, by the rules for the document of an estate.
func (b *builder) addEstate(s *Scenario) {
	if s.document == nil {
		return
	}
	b.imagine(s)
	plan, problems := estate.Diff(b.state, s.document, false)
	for _, problem := range problems {
		if name, is := strings.CutPrefix(problem.Subject, string(model.KindNode)+"/"); is && !b.has(name) {
			problem.Message, problem.Next = "it has no entry under nodes of the scenario", "tell what is known of it there"
		}
		b.Problems = append(b.Problems, problem)
	}
	if len(problems) > 0 {
		return
	}
	plan.Assign(b.at, func(kind model.Kind, name string) string { return b.idOf(kind, name, format.MadeID(kind, name)) })
	b.become(plan.Apply(b.state))
	for i := range b.state.Resources {
		b.state.Resources[i].Volume = nil // what is a volume is told by the scenario's volumes
	}
}

func (b *builder) has(node string) bool {
	_, is := b.nodeAt[node]
	return is
}

// idOf is the ID that the scenario gives a thing, or the one that it has otherwise.
func (b *builder) idOf(kind model.Kind, name, otherwise string) string {
	if id := b.ids[string(kind)+"/"+name]; id != "" {
		return id
	}
	return otherwise
}

func (b *builder) addGuest(entry *guestEntry) {
	record, n, err := b.node(entry.node)
	if err != nil {
		b.RefuseLine(entry.line, "name one of the nodes", "%v", err)
		return
	}
	g := guest{
		vm: entry.id, name: entry.foreign, foreign: true, vcpus: 1, resident: entry.resident, cpu: entry.cpu,
		young: entry.young, inFlight: entry.inFlight, state: model.DomainRunning,
	}
	if entry.vm != "" {
		vm, err := b.vm(entry.vm)
		if err != nil {
			b.RefuseLine(entry.line, "put it under vms of the estate, or call it foreign", "%v in the estate", err)
			return
		}
		g.vm, g.name, g.foreign, g.memory, g.vcpus = vm.ID, vm.Name, false, vm.Spec.Memory, vm.Spec.VCPUs
		b.hold(entry, vm, record)
	} else if g.vm == "" {
		g.vm = entry.foreign
	}
	if entry.memory != nil {
		g.memory = *entry.memory
	}
	if entry.vcpus != nil {
		g.vcpus = *entry.vcpus
	}
	if entry.ballooned != nil {
		g.ballooned = *entry.ballooned
	}
	if entry.most != nil {
		g.most = *entry.most
		if g.most < g.memory {
			b.RefuseLine(entry.line, "give the most that it can have while it runs", "%s has %v, and at most %v", g.name, g.memory, g.most)
		}
	}
	if g.ballooned > g.limit() {
		b.RefuseLine(entry.line, "give what the balloon holds back", "the balloon of %s holds back %v of %v", g.name, g.ballooned, g.limit())
	}
	if entry.inFlight {
		g.state = model.DomainAbsent
	}
	if entry.state != "" {
		g.state = model.DomainState(entry.state)
	}
	if slices.ContainsFunc(n.guests, func(other guest) bool { return other.vm == g.vm }) {
		b.RefuseLine(entry.line, "leave one out", "%s is on %s twice", g.name, entry.node)
		return
	}
	n.guests = append(n.guests, g)
}

// hold makes a node the holder of a VM, with what the VM has from its start.
func (b *builder) hold(entry *guestEntry, vm *model.VM, on *model.Node) {
	if entry.inFlight {
		vm.Operation = "the one that brings it to " + on.Name
	}
	if !entry.inFlight && !entry.stray {
		if vm.Holder != "" {
			b.RefuseLine(entry.line, "say in_flight: true where it is to go, or stray: true where it should not be",
				"VM %s runs on %s already", vm.Name, b.nodeName(vm.Holder))
			return
		}
		vm.Holder, vm.LastNode, vm.Desired, vm.RanSize = on.ID, on.ID, model.Running, vm.NextSize()
		if entry.memory != nil {
			vm.RanSize.Memory = *entry.memory
		}
		if entry.vcpus != nil {
			vm.RanSize.VCPUs = *entry.vcpus
		}
		vm.Ballooned = entry.most != nil
	}
	b.remember(entry.line, vm, &entry.past)
	resolved, err := estate.Resolve(b.source, *vm)
	if err != nil {
		b.RefuseLine(entry.line, "correct the estate", "%v", err)
		return
	}
	if !entry.stray && resolved.Cluster != on.Cluster {
		b.RefuseLine(entry.line, "let it run on a node of its cluster, or put it in another VDC",
			"VM %s of cluster %s runs on %s of cluster %s", vm.Name, resolved.Cluster, on.Name, on.Cluster)
	}
	first := !b.started[vm.ID]
	b.started[vm.ID] = true
	if entry.keysGiven {
		vm.Resident = entry.keys
	} else if first {
		vm.Resident = residentsOf(&resolved)
	}
	if entry.ownerGiven {
		vm.Owner = model.Owner{
			Customer: b.ownerID(model.KindCustomer, entry.customer), BillingEntity: b.ownerID(model.KindBillingEntity, entry.billing),
		}
	} else if first {
		vm.Owner = resolved.Owner
	}
}

// ownerID is the ID of a customer or billing entity by name. One that is no more is a stranger under its own name.
func (b *builder) ownerID(kind model.Kind, name string) string {
	if found, known := b.source.ResourceByName(kind, name); known {
		return found.ID
	}
	return name
}

func (b *builder) remember(line int, vm *model.VM, p *past) {
	if p.stickyGiven {
		vm.Sticky = p.sticky
	}
	if p.movedAgo != nil {
		vm.MovedAt = b.at.Add(-*p.movedAgo)
	}
	vm.CPU, vm.PassedCPU = cmp.Or(p.model, vm.CPU), cmp.Or(p.hostCPU, vm.PassedCPU)
	for _, one := range []struct {
		what, name string
		into       *string
	}{{"home", p.home, &vm.Home}, {"last node", p.last, &vm.LastNode}} {
		if one.name == "" {
			continue
		}
		record, _, err := b.node(one.name)
		if err != nil {
			b.RefuseLine(line, "name one of the nodes", "%s of %s: %v", one.what, vm.Name, err)
			return
		}
		*one.into = record.ID
	}
}

func (b *builder) addStopped(entry *stoppedEntry) {
	vm, err := b.vm(entry.vm)
	switch {
	case err != nil:
		b.RefuseLine(entry.line, "put it under vms of the estate", "%v in the estate", err)
	case vm.Holder != "":
		b.RefuseLine(entry.line, "leave one out", "VM %s is stopped and running", vm.Name)
	default:
		b.remember(entry.line, vm, &entry.past)
	}
}

// fillAvailable makes up for figures that the scenario leaves out: what the guests do not have is available.
func (b *builder) fillAvailable(entry *nodeEntry) {
	_, n, err := b.node(entry.name)
	if err != nil || entry.available != nil || slices.Contains(entry.unknown, "available") || !n.facts.Inventory {
		return
	}
	available := n.facts.Memory
	for i := range n.guests {
		g := &n.guests[i]
		switch {
		case g.young || g.inFlight || g.state == model.DomainAbsent: // charged on top of the figure
		case g.resident != nil:
			available -= *g.resident
		default:
			available -= g.memory
		}
	}
	available = max(available, units.Bytes(0))
	n.facts.Available = &available
}

// checkIDs refuses IDs of what is not there, and one of two things.
func (b *builder) checkIDs(ids []identity) {
	owners := make(map[string]string, len(ids))
	for _, one := range ids {
		if other := owners[one.id]; other != "" {
			b.RefuseLine(one.line, "give each thing an ID of its own", "%s has the ID %s, which %s has", one.subject, one.id, other)
		}
		owners[one.id] = one.subject
		kind, name, _ := strings.Cut(one.subject, "/")
		var known bool
		switch model.Kind(kind) {
		case model.KindNode:
			_, known = b.nodeAt[name]
		case model.KindVM:
			_, known = b.vmAt[name]
		default:
			_, known = b.source.ResourceByName(model.Kind(kind), name)
		}
		if !known {
			b.RefuseLine(one.line, "leave it out", "ids names %s, which is not there", one.subject)
		}
	}
}
