package balance

import (
	"cmp"
	"fmt"
	"slices"
)

// Parameters of even-vm-count, with the names that oVirt uses.
const (
	HighVMCount        = "HighVMCount"
	MigrationThreshold = "MigrationThreshold"
	SPMVMCountGrace    = "SPMVMCountGrace"
)

// evenVMCount is oVirt's even distribution by VM count ("Even VM distribution based on VM count per host"). The nodes with
// the highest count are sources if it is more than HighVMCount. Nodes with at least MigrationThreshold fewer VMs are targets.
// Every move takes a VM from a node with the highest count to one with at least two fewer. So the sum of the squares falls,
// and the moves come to an end.
var evenVMCount = Balancer{
	Name: "even-vm-count",
	Doc: "As many VMs on each node: it takes one from the node that has most when that is over HighVMCount and another node " +
		"has MigrationThreshold fewer.",
	Unit: "standard deviation of the VM count",
	Parameters: []Parameter{
		{
			Name: HighVMCount, Default: 10, Most: 100000, Whole: true,
			Doc: "A node with more VMs than this is overloaded. It is no limit to how many a node may take.",
		},
		{
			Name: MigrationThreshold, Default: 5, Least: 2, Most: 100000, Whole: true,
			Doc:   "How many VMs fewer a node has to have than the one with most before a VM is moved to it.",
			Below: "with 1 two nodes would hand one VM back and forth for ever",
		},
		{
			Name: SPMVMCountGrace, Default: 5, Most: 100000, Whole: true,
			Doc: "How many VMs fewer than others a node is to have that also carries the site's management.",
		},
		highCPU,
	},
	Propose: proposeByCount,
	Figure: func(s *Situation) float64 {
		var m moments
		for node := range s.Out {
			if !s.Out[node] {
				m.add(float64(s.slots(node)))
			}
		}
		return m.deviation()
	},
}

// slots is the VMs of a node, and the grace of a node with the site's management on top.
func (s *Situation) slots(node int) int {
	slots := s.Columns.Count.At(node)
	if s.Columns.Management[node] {
		slots += int(s.Parameters[SPMVMCountGrace])
	}
	return slots
}

func proposeByCount(s *Situation, take func(Proposal) bool) string {
	high, threshold := int(s.Parameters[HighVMCount]), int(s.Parameters[MigrationThreshold])
	worst, parts, first := 0, 0, -1
	for node := range s.Out {
		if !s.free(node) {
			continue
		}
		parts++
		if slots := s.slots(node); first < 0 || slots > worst {
			worst, first = slots, node
		}
	}
	switch {
	case parts < 2:
		return fewerThanTwo(parts)
	case worst <= high:
		return fmt.Sprintf("no node has more than %s %d: %s has most, %d", HighVMCount, high, s.name(first), worst)
	}
	var sources, targets []int
	for node := range s.Out {
		switch slots := s.slots(node); {
		case !s.free(node):
		case slots == worst:
			sources = append(sources, node)
		case worst-slots >= threshold:
			targets = append(targets, node)
		}
	}
	if len(targets) == 0 {
		return fmt.Sprintf("no node has %s %d fewer than the %d of %s", MigrationThreshold, threshold, worst, s.name(first))
	}
	var movable, offered int
	for _, source := range sources {
		for _, vm := range s.leastBusy(source) {
			movable++
			proposal := Proposal{VM: vm, Targets: s.taking(targets, vm), Reason: s.byCount(source, len(targets))}
			if len(proposal.Targets) == 0 {
				continue
			}
			if offered++; take(proposal) {
				return ""
			}
		}
	}
	switch has := fmt.Sprintf("%s has %d VMs", s.name(first), worst); {
	case movable == 0:
		return has + ", and none of them may be moved now"
	case offered == 0:
		return has + ", and none of those that may be moved fits on a node that has enough fewer"
	default:
		return has + ", and the policy would rather leave each of those that fit elsewhere where it is"
	}
}

func fewerThanTwo(parts int) string {
	if parts == 0 {
		return "no node takes part"
	}
	return "only one node takes part"
}

// leastBusy is a node's movable VMs by the CPU that they use, because CPU use is what makes a migration expensive.
func (s *Situation) leastBusy(node int) []int {
	var movable []int
	for _, vm := range s.On[node] {
		if s.VMs[vm].Movable {
			movable = append(movable, vm)
		}
	}
	slices.SortStableFunc(movable, func(a, b int) int { return cmp.Compare(s.VMs[a].need(), s.VMs[b].need()) })
	return movable
}

// taking is those of the targets that take the VM.
func (s *Situation) taking(targets []int, vm int) []int {
	var taking []int
	for _, node := range targets {
		if s.takes(node, &s.VMs[vm], s.Parameters[HighCPU]) {
			taking = append(taking, node)
		}
	}
	return taking
}

// byCount describes a move in words.
func (s *Situation) byCount(source, targets int) func(target int) string {
	return func(target int) string {
		others := ""
		if targets > 1 {
			others = fmt.Sprintf(", the best of %d nodes that have at least %s %d fewer",
				targets, MigrationThreshold, int(s.Parameters[MigrationThreshold]))
		}
		return fmt.Sprintf("%s has %s, more than %s %d; %s has %s%s", s.name(source), s.counted(source), HighVMCount,
			int(s.Parameters[HighVMCount]), s.name(target), s.counted(target), others)
	}
}

// counted tells how many VMs a node counts.
func (s *Situation) counted(node int) string {
	if slots, has := s.slots(node), s.Columns.Count.At(node); slots != has {
		return fmt.Sprintf("%d VMs (%d, and %d for the management on it)", slots, has, slots-has)
	}
	return fmt.Sprintf("%d VMs", s.slots(node))
}
