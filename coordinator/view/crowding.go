package view

import (
	"fmt"
	"strings"

	"berth/shared/units"
)

// Crowd is what the vCPUs of one node come to.
type Crowd struct {
	Node   string // name
	CPUs   int
	Limit  float64 // CPUs times the CPU contention ratio
	VCPUs  int     // promised
	Widest int     // vCPUs of the widest VM
	VM     string  // its name; empty: it has none yet
}

// namedCrowds is how many nodes are named in one sentence.
const namedCrowds = 5

// Crowding says in words where more vCPUs are promised than the CPU contention ratio allows, and where a VM has more vCPUs than its node
// has CPUs. By policies without the constraint vcpus-promised this refuses no VM. So it is told.
func Crowding(nodes []Crowd) []string {
	var passed, wide []string
	for i := range nodes {
		node := &nodes[i]
		if node.CPUs <= 0 {
			continue // not known
		}
		if float64(node.VCPUs) > node.Limit {
			passed = append(passed, fmt.Sprintf("%s %d of %s", node.Node, node.VCPUs, units.Figure(node.Limit)))
		}
		if node.Widest > node.CPUs {
			wide = append(wide, strings.TrimSpace(fmt.Sprintf("%s %d on %s, which has %d", node.VM, node.Widest, node.Node, node.CPUs)))
		}
	}
	var lines []string
	if len(passed) > 0 {
		lines = append(lines, "more vCPUs are promised than the CPUs times cpu_ratio: "+units.Some(passed, namedCrowds, ", "))
	}
	if len(wide) > 0 {
		lines = append(lines, "more vCPUs in one VM than its node has CPUs: "+units.Some(wide, namedCrowds, ", "))
	}
	return lines
}

// Crowds tells whether Crowding may have something to say of the node: of most it has not.
func (n *NodeView) Crowds() bool {
	return float64(n.VCPUsUsed) > n.VCPULimit || n.widest > n.Facts.CPUs
}

// Crowd is what the vCPUs of the node come to, with what is on its way there and without what is on its way from there.
func (n *NodeView) Crowd() Crowd {
	crowd := Crowd{Node: n.Node.Name, Limit: n.VCPULimit, VCPUs: n.VCPUsUsed}
	if n.Facts.Inventory {
		crowd.CPUs = n.Facts.CPUs
	}
	for i := range n.Allocations {
		if one := &n.Allocations[i]; !one.Leaving && one.VCPUs > crowd.Widest {
			crowd.Widest, crowd.VM = one.VCPUs, one.Name
		}
	}
	return crowd
}
