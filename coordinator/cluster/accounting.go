package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	"berth/shared/units"
)

// NewView joins the records with the facts and does all accounting. Times in facts and at are the coordinator's; facts
// has an entry for every node that anything is known of, by node ID.
//
// A node is charged, once per VM and with the largest size that anybody claims, for every domain that holds memory there
// (Berth's own or not), for every VM whose record names it as holder, and for every reservation.
func NewView(
	at time.Time, index uint64, nodes []Node, vms []VM, reservations []Reservation, facts map[string]NodeFacts,
) *View {
	view := &View{At: at, Index: index, Nodes: make([]*NodeView, 0, len(nodes))}
	charges := make(map[string][]charge, len(nodes))
	records := make(map[string]*VM, len(vms))
	for i := range vms {
		vm := &vms[i]
		records[vm.ID] = vm
		if vm.Holder != "" {
			charges[vm.Holder] = append(charges[vm.Holder], charge{
				Allocation: Allocation{VM: vm.ID, Name: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs},
				since:      vm.StartedAt,
			})
		}
	}
	for _, held := range reservations {
		charges[held.Node] = append(charges[held.Node], charge{Allocation: Allocation{
			VM: held.VM, Name: held.Name, Memory: held.Memory, VCPUs: held.VCPUs, InFlight: true,
		}})
	}
	for _, node := range nodes {
		known := facts[node.ID]
		claimed := charges[node.ID]
		for i := range known.Domains {
			if domain := &known.Domains[i]; domain.State.Holds() {
				claimed = append(claimed, chargeOf(domain, records[domain.UUID], node.ID))
			}
		}
		view.Nodes = append(view.Nodes, newNodeView(node, known, claimed))
	}
	slices.SortFunc(view.Nodes, func(a, b *NodeView) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	return view
}

// charge is one claim on a node, before those of one VM are merged.
type charge struct {
	Allocation
	since    time.Time // when it began to take memory
	arriving bool      // a migration is filling it
}

// chargeOf is a domain's claim. A domain that is paused by a migration on a node that does not hold the VM is its
// incoming copy, which grows while it is copied.
func chargeOf(domain *Domain, record *VM, node string) charge {
	return charge{
		Allocation: Allocation{
			VM: domain.UUID, Name: domain.Name, Memory: max(domain.Memory, 0), VCPUs: max(domain.VCPUs, 0),
			Foreign: record == nil,
		},
		since:    domain.Since,
		arriving: domain.State == DomainPausedMigration && (record == nil || record.Holder != node),
	}
}

func newNodeView(node Node, facts NodeFacts, claimed []charge) *NodeView {
	view := &NodeView{Node: node, Settings: node.Settings.Effective(), Facts: facts}
	if facts.Inventory {
		view.PromisedLimit = scale(facts.Memory, view.Settings.RAMRatio)
		view.VCPULimit = float64(facts.CPUs) * view.Settings.CPURatio
	}
	if facts.Telemetry && facts.Available != nil {
		view.PhysicalFree, view.PhysicalKnown = *facts.Available, true
	}
	view.Allocations = merge(claimed, facts)
	for i := range view.Allocations {
		view.PromisedUsed = add(view.PromisedUsed, view.Allocations[i].Memory)
		view.VCPUsUsed += view.Allocations[i].VCPUs
		view.PhysicalFree = add(view.PhysicalFree, -view.Allocations[i].physicalCharge())
	}
	if !view.PhysicalKnown {
		view.PhysicalFree = 0
	}
	return view
}

// merge makes one allocation a VM out of its claims: the largest size, the latest start.
func merge(claimed []charge, facts NodeFacts) []Allocation {
	if len(claimed) == 0 {
		return nil
	}
	slices.SortStableFunc(claimed, func(a, b charge) int { return cmp.Compare(a.VM, b.VM) })
	merged := make([]Allocation, 0, len(claimed))
	for first := 0; first < len(claimed); {
		one := claimed[first]
		next := first + 1
		for ; next < len(claimed) && claimed[next].VM == one.VM; next++ {
			other := &claimed[next]
			one.Memory = max(one.Memory, other.Memory)
			one.VCPUs = max(one.VCPUs, other.VCPUs)
			one.InFlight = one.InFlight || other.InFlight
			one.arriving = one.arriving || other.arriving
			if other.since.After(one.since) {
				one.since = other.since
			}
		}
		one.Young = one.arriving || !facts.Telemetry || !one.since.Before(facts.TelemetryAt)
		merged = append(merged, one.Allocation)
		first = next
	}
	return merged
}

// physicalCharge is what the allocation takes off the physical ledger: nothing once the telemetry has seen it.
func (a *Allocation) physicalCharge() units.Bytes {
	if a.Young || a.InFlight {
		return a.Memory
	}
	return 0
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
