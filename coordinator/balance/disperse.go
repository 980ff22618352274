package balance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/placement"
)

// DispersalUnit is the unit of plans that spread customers' VMs, whatever the balancer.
const DispersalUnit = "sum over customers of the standard deviation of their VMs a node"

// allSpread says that there is nothing to do.
const allSpread = "the VMs of each customer are spread evenly"

// account counts the VMs of each customer by node, each VM where it is or where it is on its way to.
func (g *ground) account() {
	g.accounts = make(map[string][]int)
	for node, id := range g.columns.IDs {
		allocations := g.View.Node(id).Allocations
		for i := range allocations {
			one := &allocations[i]
			where, told := g.where[one.VM]
			if one.Owner.Customer == "" || told && where != id {
				continue
			}
			if g.accounts[one.Owner.Customer] == nil {
				g.accounts[one.Owner.Customer] = make([]int, g.columns.Len())
			}
			g.accounts[one.Owner.Customer][node]++
		}
	}
}

// moveAccount counts a VM on another node from now on.
func (g *ground) moveAccount(vm, from, to int) {
	if counts := g.accounts[g.holds[vm].Owner.Customer]; counts != nil {
		counts[from]--
		counts[to]++
	}
}

// crowds tells whether a move would leave the VMs of the VM's customer less evenly spread. It is false where customers' VMs
// are not kept spread.
func (g *ground) crowds(vm, to int) bool {
	counts := g.accounts[g.holds[vm].Owner.Customer]
	return counts != nil && counts[to] >= counts[g.at[vm]]
}

// uneven is a customer whose VMs could be spread more evenly.
type uneven struct {
	customer     string // ID
	counts       []int  // VMs by node
	most, fewest int    // nodes
}

// dispersal finds moves that spread the VMs of each customer.
type dispersal struct{ *ground }

// disperse offers moves that spread a customer's VMs more evenly, beginning with the customer whose gap is widest. VMs leave
// the node that has most of them for the nodes with fewest, which must have at least two fewer. Every such move lowers the
// sum of the squares, so the moves come to an end. If none was taken, why says the reason; empty: all are spread evenly.
func (d dispersal) disperse(s *Situation, take func(Proposal) bool) (why string) {
	for _, one := range d.unevens(s) {
		if d.disperseOne(s, &one, take) {
			return ""
		}
		if why == "" {
			why = fmt.Sprintf("customer %s has %d VMs on %s and %d on %s, and no move would be allowed that spreads them more evenly",
				d.owner(one.customer), one.counts[one.most], s.name(one.most), one.counts[one.fewest], s.name(one.fewest))
		}
	}
	return why
}

// gap is the difference between the node with most VMs and the one with fewest.
func (u *uneven) gap() int { return u.counts[u.most] - u.counts[u.fewest] }

// owner is what people call a customer.
func (d dispersal) owner(customer string) string {
	for i := range d.VMs {
		if d.VMs[i].Owner != "" && d.holds[i].Owner.Customer == customer {
			return d.VMs[i].Owner
		}
	}
	return customer
}

// unevens is the customers with a gap of two or more, the widest first.
func (d dispersal) unevens(s *Situation) []uneven {
	var found []uneven
	for _, customer := range slices.Sorted(maps.Keys(d.accounts)) {
		counts := d.accounts[customer]
		most, fewest := -1, -1
		for node := range counts {
			if s.free(node) {
				if most < 0 || counts[node] > counts[most] {
					most = node
				}
				if fewest < 0 || counts[node] < counts[fewest] {
					fewest = node
				}
			}
		}
		if most >= 0 && counts[most]-counts[fewest] >= 2 {
			found = append(found, uneven{customer, counts, most, fewest})
		}
	}
	slices.SortStableFunc(found, func(a, b uneven) int { return cmp.Compare(b.gap(), a.gap()) })
	return found
}

// disperseOne offers the moves of one customer's VMs.
func (d dispersal) disperseOne(s *Situation, one *uneven, take func(Proposal) bool) bool {
	var nodes []int // the node with fewest first
	for node := range one.counts {
		if s.free(node) {
			nodes = append(nodes, node)
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(one.counts[a], one.counts[b]) })
	highCPU := cmp.Or(s.Parameters[HighCPU], highCPU.Default)
	sources := slices.Clone(nodes)
	slices.SortStableFunc(sources, func(a, b int) int { return cmp.Compare(one.counts[b], one.counts[a]) })
	for _, source := range sources {
		has := one.counts[source]
		vms := slices.DeleteFunc(s.leastBusy(source), func(vm int) bool {
			return d.holds[vm].Owner.Customer != one.customer || d.VMs[vm].Concentrated
		})
		for first := 0; len(vms) > 0 && first < len(nodes) && has-one.counts[nodes[first]] >= 2; {
			next := first + 1
			for next < len(nodes) && one.counts[nodes[next]] == one.counts[nodes[first]] {
				next++
			}
			for _, vm := range vms {
				proposal := Proposal{VM: vm, Reason: d.byAccount(s, one, source)}
				for _, target := range nodes[first:next] {
					if s.takes(target, &s.VMs[vm], highCPU) {
						proposal.Targets = append(proposal.Targets, target)
					}
				}
				if len(proposal.Targets) > 0 && take(proposal) {
					return true
				}
			}
			first = next
		}
	}
	return false
}

// byAccount describes a move in words.
func (d dispersal) byAccount(s *Situation, one *uneven, source int) func(target int) string {
	counts := slices.Clone(one.counts)
	return func(target int) string {
		return fmt.Sprintf("disperses customer %s: %s has %d of its VMs, %s has %d", d.owner(one.customer), s.name(source), counts[source],
			s.name(target), counts[target])
	}
}

// part asks the engine which of a proposal's targets the VM goes to. The VM may not stay.
func (d dispersal) part(p Proposal, seed uint64) (request placement.Request, target int, chosen bool) {
	request, err := d.ask(p.VM, placement.ForBalance)
	if err != nil {
		return request, -1, false
	}
	request.Leave, request.Among = true, d.keeping(&p)
	if len(request.Among) == 0 {
		return request, -1, false
	}
	choice := d.choose(d.engine, p.VM, &request, seed)
	return request, choice.Node, choice.Node >= 0
}

// spread finds a move that spreads a customer's VMs more evenly. It returns why there is none; empty: none is needed.
func (d dispersal) spread(s *Situation, found *Found) string {
	seed := d.Seed()
	return d.disperse(s, func(p Proposal) bool {
		request, target, chosen := d.part(p, seed)
		return chosen && d.accept(found, &p, &request, target, seed, DispersalUnit, func() float64 { return d.unevenness(s) })
	})
}

// unevenness is how unevenly the VMs of all customers are spread over the nodes that take part.
func (d dispersal) unevenness(s *Situation) float64 {
	sum := 0.0
	for _, customer := range slices.Sorted(maps.Keys(d.accounts)) {
		var m moments
		for node, n := range d.accounts[customer] {
			if !s.Out[node] {
				m.add(float64(n))
			}
		}
		sum += m.deviation()
	}
	return sum
}
