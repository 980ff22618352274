package view

import (
	"cmp"
	"math"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/view/wordindex"
	"berth/shared/units"
)

// Records are the hard facts that a view is made of. A view keeps them: nobody changes them afterwards.
type Records struct {
	Clusters     []model.Resource // of KindCluster; the default cluster need not be among them
	Nodes        []model.Node
	VMs          []model.VM
	Reservations []model.Reservation
	Groups       []model.Resource // of KindGroup
	Pools        []model.Resource // of KindPool
	Disks        []model.Resource // of KindDisk and KindImage, those with a Volume
	Apart        model.PoolsApart // proven by trials; nil: nothing is known of that
}

// New joins the records with the facts and does all accounting. Times in facts and at are the coordinator's; facts
// has an entry for every node that anything is known of, by node ID.
//
// A node is charged, once per VM and with the largest size that anybody claims, for every domain that holds memory there
// (Berth's own or not), for every VM whose record names it as holder, and for every reservation.
func New(at time.Time, index uint64, records Records, facts map[string]model.NodeFacts) *View {
	return Over(at, index, records, List(records.VMs), facts)
}

// Over is New of VMs that are looked up as they are needed: those in records do not count.
func Over(at time.Time, index uint64, records Records, vms VMs, facts map[string]model.NodeFacts) *View {
	view := &View{
		At: at, Index: index, clusters: clustersOf(records.Clusters),
		gathered: newGathered(), words: new(wordindex.Index), storage: newStorage(&records, vms), held: reservedOf(records.Reservations),
		roster: &roster{declared: declaredOf(&records), vms: vms},
	}
	nodes := make([]*NodeView, 0, len(records.Nodes))
	for i := range records.Nodes {
		node := &records.Nodes[i]
		nodes = append(nodes, view.account(*node, facts[node.ID]))
	}
	slices.SortFunc(nodes, func(a, b *NodeView) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	view.Nodes = NodesOf(nodes)
	for _, node := range view.Nodes.All() {
		view.strays.replace(node.Node.ID, nil, node.strays)
		reword(view, node.Node.ID, nil, node)
	}
	return view
}

// account is one node with its accounting done.
func (v *View) account(node model.Node, facts model.NodeFacts) *NodeView {
	claimed := make([]charge, 0, 2*len(facts.Domains)) // room for each VM twice: its record and its domain both claim
	var strays, odd []string
	ran := 0
	holds := make([]*model.VM, 0, len(facts.Domains))
	for vm := range v.roster.vms.On(node.ID) {
		holds = append(holds, vm)
		size := sizeOf(vm, &facts)
		claim := charge{Allocation: Allocation{VM: vm.ID, Name: vm.Name, Memory: size.Memory, VCPUs: size.VCPUs}, since: vm.StartedAt}
		claim.know(vm)
		claim.Leaving = v.held.leaves(vm.ID, node.ID)
		claimed = append(claimed, claim)
		if domain := facts.Domain(vm.ID); domain == nil || domain.State != model.DomainRunning {
			odd = append(odd, vm.ID)
		} else {
			ran++
		}
	}
	for _, held := range v.held.on[node.ID] {
		claimed = append(claimed, chargeOfReservation(*held, v.roster.vms.ByID(held.VM)))
	}
	compare := func(vm *model.VM, id string) int { return cmp.Compare(vm.ID, id) }
	slices.SortFunc(holds, func(a, b *model.VM) int { return compare(a, b.ID) })
	for i := range facts.Domains {
		if domain := &facts.Domains[i]; domain.State.Holds() {
			var record *model.VM // mostly one that is found already: there are far more others to look through
			if at, found := slices.BinarySearchFunc(holds, domain.UUID, compare); found {
				record = holds[at]
			} else {
				record = v.roster.vms.ByID(domain.UUID)
			}
			claimed = append(claimed, chargeOf(domain, record, node.ID))
			if record == nil || record.Holder != node.ID {
				strays = append(strays, domain.UUID)
			}
		}
	}
	counted := newNodeView(node, v.clusterOf(node).Settings, facts, claimed)
	slices.Sort(odd)
	counted.strays, counted.ran, counted.odd = strays, ran, odd
	return counted
}

// sizeOf is how large a VM is where it runs, which its next start may change.
func sizeOf(vm *model.VM, holder *model.NodeFacts) model.Size {
	if vm.RanSize != (model.Size{}) {
		return vm.RanSize // what its node shows claims for itself
	}
	return vm.SizeOn(holder.Domain(vm.ID))
}

// charge is one claim on a node, before those of one VM are merged.
type charge struct {
	Allocation
	since    time.Time     // when it began to take memory
	arriving bool          // a migration is filling it
	domain   *model.Domain // nil: it is not of a domain
}

// know takes over what the VM's record says of it.
func (c *charge) know(record *model.VM) {
	c.Resident, c.Owner = record.Resident, record.Owner
	c.Fixed, c.Labels, c.HA = record.Migration == model.MigrateNever, record.Labels, record.HA
	if next := record.NextSize().Memory; c.HA && next > c.Memory {
		c.Next = next
	}
}

// chargeOfReservation is the claim of a live operation; the VM's record may be nil.
func chargeOfReservation(held model.Reservation, record *model.VM) charge {
	one := charge{Allocation: Allocation{
		VM: held.VM, Name: held.Name, Memory: held.Memory, VCPUs: held.VCPUs, InFlight: !held.There,
	}}
	if record != nil {
		one.know(record)
	}
	return one
}

// chargeOf is a domain's claim. A domain that is paused by a migration on a node that does not hold the VM is its
// incoming copy, which grows while it is copied.
func chargeOf(domain *model.Domain, record *model.VM, node string) charge {
	claim := charge{
		Allocation: Allocation{
			VM: domain.UUID, Name: domain.Name, Memory: max(domain.Memory, 0), VCPUs: max(domain.VCPUs, 0),
			Foreign: record == nil,
		},
		since:    domain.Since,
		arriving: domain.State == model.DomainPausedMigration && (record == nil || record.Holder != node),
		domain:   domain,
	}
	if record != nil {
		if record.Holder == node {
			claim.Memory = max(record.MemoryOf(domain), 0)
		}
		claim.know(record)
	}
	return claim
}

func newNodeView(node model.Node, defaults model.Settings, facts model.NodeFacts, claimed []charge) *NodeView {
	view := &NodeView{Node: node, Settings: node.Settings.Over(defaults.Nodes), Facts: facts}
	if facts.Inventory {
		view.PromisedLimit = scale(facts.Memory, view.Settings.RAMRatio)
		view.VCPULimit = float64(facts.CPUs) * view.Settings.CPURatio
	}
	if facts.Telemetry && facts.Available != nil {
		view.PhysicalFree, view.PhysicalKnown = *facts.Available, true
		if defaults.PhysicalLedger == model.Pessimistic {
			view.Borrowed = borrowed(facts)
			view.PhysicalFree = add(view.PhysicalFree, -view.Borrowed)
		}
	}
	view.Allocations = merge(claimed, facts, defaults.PhysicalLedger)
	for i := range view.Allocations {
		view.PromisedUsed = add(view.PromisedUsed, view.Allocations[i].Memory)
		view.VCPUsUsed += view.Allocations[i].VCPUs
		view.widest = max(view.widest, view.Allocations[i].VCPUs)
		view.PhysicalFree = add(view.PhysicalFree, -view.Allocations[i].physicalCharge())
	}
	if !view.PhysicalKnown {
		view.PhysicalFree = 0
	}
	return view
}

// borrowed is the memory that looks free only because KSM shares pages and balloons hold memory back. Either can end in a
// moment: a guest writes to a shared page, a balloon deflates.
func borrowed(facts model.NodeFacts) units.Bytes {
	var sum units.Bytes
	if facts.KSMSaved != nil {
		sum = add(sum, *facts.KSMSaved)
	}
	for i := range facts.Domains {
		sum = add(sum, ballooned(&facts.Domains[i]))
	}
	return sum
}

// ballooned is the memory that a domain's balloon holds back.
func ballooned(domain *model.Domain) units.Bytes {
	if !domain.State.Holds() || domain.Balloon == nil {
		return 0
	}
	return max(0, domain.Memory-*domain.Balloon)
}

// merge makes one allocation a VM out of its claims: the largest size, the latest start.
func merge(claimed []charge, facts model.NodeFacts, ledger model.Ledger) []Allocation {
	if len(claimed) == 0 {
		return nil
	}
	sorted := make([]*charge, len(claimed)) // claims are too large to be moved about
	for i := range claimed {
		sorted[i] = &claimed[i]
	}
	slices.SortStableFunc(sorted, func(a, b *charge) int { return cmp.Compare(a.VM, b.VM) })
	merged := make([]Allocation, 0, len(claimed))
	for first := 0; first < len(sorted); {
		one := *sorted[first]
		next := first + 1
		for ; next < len(sorted) && sorted[next].VM == one.VM; next++ {
			other := sorted[next]
			one.Memory = max(one.Memory, other.Memory)
			one.VCPUs = max(one.VCPUs, other.VCPUs)
			one.InFlight, one.Leaving = one.InFlight || other.InFlight, one.Leaving || other.Leaving
			one.arriving = one.arriving || other.arriving
			if one.domain == nil {
				one.domain = other.domain
			}
			if other.since.After(one.since) {
				one.since = other.since
			}
		}
		one.Young = one.arriving || !facts.Telemetry || !one.since.Before(facts.TelemetryAt)
		one.measure(ledger)
		merged = append(merged, one.Allocation)
		first = next
	}
	return merged
}

// measure works out what of the node's figures is the VM's. With the pessimistic ledger, what its balloon holds back is taken
// for used, and free again once it is gone.
func (c *charge) measure(ledger model.Ledger) {
	switch {
	case c.Young || c.InFlight:
		c.Frees = c.Memory
	case c.domain != nil && c.domain.Resident != nil:
		c.Frees = max(0, min(*c.domain.Resident, c.Memory))
	}
	if c.domain == nil {
		return
	}
	if ledger == model.Pessimistic {
		c.Frees = add(c.Frees, ballooned(c.domain))
	}
	if c.domain.CPU != nil {
		c.CPU = max(0, *c.domain.CPU)
	}
}

// physicalCharge is what the allocation takes off the physical ledger: nothing once the telemetry has seen it.
func (a *Allocation) physicalCharge() units.Bytes {
	if a.Young || a.InFlight {
		return a.Memory
	}
	return 0
}

// unseen tells whether the node's load cannot show yet what the VM uses.
func (a *Allocation) unseen() bool { return a.CPU == 0 && (a.Young || a.InFlight) }

// coming are the vCPUs of the VMs whose use the node's load cannot show yet.
func (n *NodeView) coming() int {
	sum := 0
	for i := range n.Allocations {
		if one := &n.Allocations[i]; one.unseen() {
			sum += one.VCPUs
		}
	}
	return sum
}

// PromisedFree is what is left to promise. It is negative on a node that is promised beyond its limit.
func (n *NodeView) PromisedFree() units.Bytes { return add(n.PromisedLimit, -n.PromisedUsed) }

// TelemetryAge is how old the node's telemetry is at the view's time; false if there is none.
func (n *NodeView) TelemetryAge(at time.Time) (time.Duration, bool) {
	if !n.Facts.Telemetry {
		return 0, false
	}
	return max(at.Sub(n.Facts.TelemetryAt), 0), true
}

// Holds finds what a VM takes of the node.
func (n *NodeView) Holds(vm string) (Allocation, bool) {
	at, found := slices.BinarySearchFunc(n.Allocations, vm, func(a Allocation, id string) int {
		return cmp.Compare(a.VM, id)
	})
	if !found {
		return Allocation{}, false
	}
	return n.Allocations[at], true
}

// add saturates instead of wrapping around: an absurd figure from outside must not turn a full node into an empty one.
func add(a, b units.Bytes) units.Bytes {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

func scale(amount units.Bytes, ratio float64) units.Bytes {
	product := float64(amount) * ratio
	switch {
	case product >= math.MaxInt64:
		return math.MaxInt64
	case product > 0:
		return units.Bytes(product)
	default: // not a number included
		return 0
	}
}
