package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/scenario/format"
	"berth/coordinator/view"
	"berth/shared/units"
)

// world is a scenario while it runs: a site, what happens in it, and its leader.
type world struct{ leader }

// site is what there is at one moment, as coordinator and agents would know it.
type site struct {
	at    time.Time
	still bool             // no time passes: a move is over when it begins
	state estate.State     // records: who holds which VM stands here
	nodes map[string]*node // by ID

	nodeAt, vmAt map[string]int // indexes into the state, by name

	networks, bridges []string // that anything of the estate asks for
}

// become takes over records.
func (s *site) become(state estate.State) {
	s.state = state
	s.networks, s.bridges = asked(&state)
	s.nodeAt, s.vmAt = make(map[string]int, len(state.Nodes)), make(map[string]int, len(state.VMs))
	for i := range state.Nodes {
		s.nodeAt[state.Nodes[i].Name] = i
	}
	for i := range state.VMs {
		s.vmAt[state.VMs[i].Name] = i
	}
}

// node is what is known of a node without its record.
type node struct {
	facts  model.NodeFacts // without domains
	guests []guest

	anyNetwork bool // nobody told its networks: it has all that anybody asks for
}

// guest is what one VM or domain has of a node.
type guest struct {
	vm        string // UUID
	name      string
	foreign   bool
	memory    units.Bytes
	vcpus     int
	resident  *units.Bytes
	cpu       *float64
	ballooned units.Bytes // held back by its balloon
	most      units.Bytes // what it can have while it runs, if somebody has wanted it to have less
	young     bool        // not in the node's available memory yet
	inFlight  bool        // a reservation: the VM is about to come
	state     model.DomainState
}

// recordsOf are the records of an estate that a view reads. The VMs are a copy of their own.
func recordsOf(state *estate.State) view.Records {
	records := view.Records{Nodes: state.Nodes, VMs: slices.Clone(state.VMs)}
	for _, resource := range state.Resources {
		switch resource.Kind {
		case model.KindCluster:
			records.Clusters = append(records.Clusters, resource)
		case model.KindGroup:
			records.Groups = append(records.Groups, resource)
		case model.KindPool:
			records.Pools = append(records.Pools, resource)
		case model.KindDisk, model.KindImage:
			if resource.Volume != nil {
				records.Disks = append(records.Disks, resource)
			}
		}
	}
	return records
}

// view is the world as placement sees it.
func (s *site) view() *view.View {
	records := recordsOf(&s.state)
	facts := make(map[string]model.NodeFacts, len(s.nodes))
	for id, node := range s.nodes {
		known := node.facts
		if node.anyNetwork {
			known.Networks, known.Bridges = s.networks, s.bridges
		}
		known.Domains = make([]model.Domain, 0, len(node.guests))
		for i := range node.guests {
			g := &node.guests[i]
			if g.inFlight {
				records.Reservations = append(records.Reservations, model.Reservation{
					Node: id, VM: g.vm, Name: g.name, Memory: g.memory, VCPUs: g.vcpus,
				})
			}
			if at, is := s.vmAt[g.name]; is && g.young && records.VMs[at].Holder == id && records.VMs[at].ID == g.vm {
				records.VMs[at].StartedAt = known.TelemetryAt // as young as its domain, which need not be there yet
			}
			if g.state != model.DomainAbsent {
				known.Domains = append(known.Domains, s.domain(g, known.TelemetryAt))
			}
		}
		slices.SortFunc(known.Domains, func(a, b model.Domain) int { return cmp.Compare(a.UUID, b.UUID) })
		facts[id] = known
	}
	slices.SortFunc(records.Reservations, func(a, b model.Reservation) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.VM, b.VM))
	})
	return view.New(s.at, 0, records, facts)
}

// limit is the memory that a guest can have while it runs: what its domain shows.
func (g *guest) limit() units.Bytes { return max(g.memory, g.most) }

func (s *site) domain(g *guest, telemetryAt time.Time) model.Domain {
	domain := model.Domain{
		UUID: g.vm, Name: g.name, State: g.state, Memory: g.limit(), VCPUs: g.vcpus, Managed: !g.foreign,
		Resident: g.resident, CPU: g.cpu,
	}
	if g.young {
		domain.Since = telemetryAt
	}
	if g.ballooned > 0 {
		left := g.limit() - g.ballooned
		domain.Balloon = &left
	}
	return domain
}

func (s *site) node(name string) (*model.Node, *node, error) {
	at, known := s.nodeAt[name]
	if !known {
		return nil, nil, fmt.Errorf("there is no node %q", name)
	}
	record := &s.state.Nodes[at]
	return record, s.nodes[record.ID], nil
}

func (s *site) nodeName(id string) string {
	if record, known := s.state.Node(id); known {
		return record.Name
	}
	return id
}

func (s *site) vm(name string) (*model.VM, error) {
	at, known := s.vmAt[name]
	if !known {
		return nil, fmt.Errorf("there is no VM %q", name)
	}
	return &s.state.VMs[at], nil
}

// guest is what a VM has of the node that holds it.
func (s *site) guest(vm *model.VM) (*guest, error) {
	if vm.Holder == "" {
		return nil, fmt.Errorf("VM %q does not run", vm.Name)
	}
	guests := s.nodes[vm.Holder].guests
	at := slices.IndexFunc(guests, func(g guest) bool { return g.vm == vm.ID })
	if at < 0 { // not in a world that was put together from a file
		return nil, fmt.Errorf("VM %q is not on %s", vm.Name, s.nodeName(vm.Holder))
	}
	return &guests[at], nil
}

// idle refuses a VM that an operation works on.
func (s *site) idle(vm *model.VM) error {
	for id, node := range s.nodes {
		for i := range node.guests {
			if g := &node.guests[i]; g.vm == vm.ID && g.inFlight {
				return fmt.Errorf("VM %q is on its way to %s", vm.Name, s.nodeName(id))
			}
		}
	}
	return nil
}

// arrive puts a VM on a node. While time stands still it is charged its full size on both ledgers, also on the physical one,
// until new figures of the node are set; where time passes, what it has comes with it. Its CPU use does in any case.
func (s *site) arrive(id string, g guest) {
	node := s.nodes[id]
	if s.still || g.resident == nil {
		full := g.memory
		g.resident, g.ballooned, g.most = &full, 0, 0
	}
	g.young, g.inFlight, g.state = false, false, model.DomainRunning
	node.facts.Available = shifted(node.facts.Available, -*g.resident)
	node.use(g.cpu, 1)
	node.guests = append(node.guests, g)
}

// leave takes a VM from a node, which gets back what the VM has of it, as far as it is known.
func (s *site) leave(id, vm string) guest {
	node := s.nodes[id]
	at := slices.IndexFunc(node.guests, func(g guest) bool { return g.vm == vm })
	gone := node.guests[at]
	node.guests = slices.Delete(slices.Clone(node.guests), at, at+1)
	if !gone.young && gone.resident != nil {
		node.facts.Available = shifted(node.facts.Available, min(*gone.resident, gone.memory))
	}
	node.use(gone.cpu, -1)
	return gone
}

// use adds or takes away a guest's CPU use.
func (n *node) use(cpu *float64, sign float64) {
	if cpu == nil {
		return
	}
	if n.facts.Load1 != nil {
		load := max(0, *n.facts.Load1+sign**cpu)
		n.facts.Load1 = &load
	}
	if n.facts.CPUBusy != nil && n.facts.CPUs > 0 {
		busy := min(max(0, *n.facts.CPUBusy+sign**cpu/float64(n.facts.CPUs)), 1)
		n.facts.CPUBusy = &busy
	}
}

func shifted(figure *units.Bytes, by units.Bytes) *units.Bytes {
	if figure == nil {
		return nil
	}
	sum := *figure + by
	return &sum
}

// apply takes over figures of a node.
func (n *node) apply(at time.Time, f *figures) {
	facts := &n.facts
	if f.memory != nil {
		facts.Memory, facts.Inventory = *f.memory, true
	}
	if f.cpus != nil {
		facts.CPUs, facts.Inventory = *f.cpus, true
	}
	if f.inventoryAge != nil {
		facts.InventoryAt = at.Add(-*f.inventoryAge)
	}
	if f.telemetryAge != nil {
		facts.TelemetryAt = at.Add(-*f.telemetryAge)
	}
	take(&facts.Available, f.available)
	take(&facts.KSMSaved, f.ksmSaved)
	for i, figure := range f.measured {
		take(format.Measurements[i].At(facts), figure)
	}
	for _, what := range f.unknown {
		switch what {
		case "inventory":
			facts.Inventory, facts.InventoryAt = false, time.Time{}
		case "domains":
			facts.DomainsKnown = false
		case "telemetry":
			facts.Telemetry, facts.TelemetryAt = false, time.Time{}
		case "available":
			facts.Available = nil
		case "load":
			facts.Load1 = nil
		case "pools":
			facts.PoolsKnown = false
		case "networks":
			n.anyNetwork, facts.NetworksKnown = false, false
		}
	}
	n.surround(&f.around)
	if f.state != "" {
		facts.Liveness, facts.LivenessReason = model.Liveness(f.state), f.stateReason
		if f.state == format.Unheard {
			facts.Liveness = ""
		}
	}
}

func take[T any](into **T, figure *T) {
	if figure != nil {
		*into = figure
	}
}

// news tells whether the figures have something that telemetry brings.
func (f *figures) news() bool {
	return f.available != nil || f.ksmSaved != nil || f.measured != nil
}
