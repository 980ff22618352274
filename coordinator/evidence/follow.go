package evidence

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// Follower remembers what the last look has found about VMs: what two looks show alike is believed. It is not safe for
// concurrent use.
type Follower struct {
	before map[string]string // in words by VM ID
}

// Found is what has become of a VM beside Berth.
type Found struct {
	VM model.VM
	Finding
}

// Look is what this look and the last one have found alike, of VMs that no operation works on.
func (f *Follower) Look(m Moment) []Found {
	var all []Found
	now := map[string]string{}
	shown, unheard := m.Shown()
	for _, vm := range m.VMs() {
		if vm.Operation != "" {
			continue
		}
		finding := Beside(vm, m.sighting(vm, shown[vm.ID], unheard))
		now[vm.ID] = fmt.Sprint(finding.Verdict, finding.Condition, finding.Node, len(finding.Leftovers))
		if f.before[vm.ID] == now[vm.ID] {
			all = append(all, Found{vm, finding})
		}
	}
	f.before = now
	return all
}

// Shown is all that the nodes show, by UUID, and the names of those that do not tell, without what is proven to be off.
func (m Moment) Shown() (shown map[string][]Copy, unheard []string) {
	shown = map[string][]Copy{}
	nodes := m.Nodes()
	slices.SortFunc(nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range nodes {
		node := &nodes[i]
		facts := m.Facts(node.ID)
		speaks := facts.Liveness == model.Up
		switch {
		case node.Fenced() && !speaks:
			continue
		case node.Fenced(), !speaks, !facts.Inventory, !facts.DomainsKnown: // one that speaks although it is off is not believed
			unheard = append(unheard, node.Name)
			continue
		}
		for _, domain := range facts.Domains {
			shown[domain.UUID] = append(shown[domain.UUID], Copy{Node: node.ID, Name: node.Name, Domain: domain})
		}
	}
	return shown, unheard
}

func (m Moment) sighting(vm model.VM, copies []Copy, unheard []string) Sighting {
	seen := Sighting{Unheard: unheard}
	for i := range copies {
		if !isLeft(&vm, copies[i].Node, &copies[i].Domain) {
			seen.Copies = append(seen.Copies, copies[i])
		}
	}
	if vm.Holder != "" {
		seen.Holder, seen.HolderLacks = m.NodeName(vm.Holder), m.Lacks(vm)
		if node, known := m.Node(vm.Holder); known {
			seen.Astray = m.strayed(vm, node)
		}
	}
	return seen
}

// Lacks tells whether the node that should run the VM positively does not: its agent listed all domains after the VM was
// started, and it was not among them.
func (m Moment) Lacks(vm model.VM) bool {
	facts := m.Facts(vm.Holder)
	if facts.Liveness != model.Up || !facts.Inventory || !facts.DomainsKnown || !facts.InventoryAt.After(vm.StartedAt) ||
		!facts.InventoryAt.After(vm.MovedAt) {
		return false
	}
	for _, domain := range facts.Domains {
		if domain.UUID == vm.ID && domain.State.Holds() {
			return false
		}
	}
	return true
}

// strayed says which disk of a VM is recorded on another node's local pool than the one that has the VM: nobody but who moved
// it knows what its content is now. Empty: none is.
func (m Moment) strayed(vm model.VM, node model.Node) string {
	for _, id := range vm.Disks {
		disk, _ := m.Resource(id)
		if disk.Volume == nil || len(disk.Volume.Nodes) == 0 || slices.Contains(disk.Volume.Nodes, node.ID) {
			continue
		}
		return fmt.Sprintf("somebody else moved it to %s, and its disk %s is recorded on %s: move it back there before it is stopped",
			node.Name, disk.Name, m.NodeName(disk.Volume.Nodes[0]))
	}
	return ""
}
