package affinity

import "slices"

// Both is a VM that a rule for nodes and a rule for VMs ask to move. What serves the one may undo the other.
type Both struct {
	VM         string // ID
	Nodes, VMs Breach // of the candidates for these rules the first ones
}

// Text says why the VM is moved for two reasons, and which one counts first.
func (b *Both) Text() string {
	return "a rule for nodes and a rule for VMs ask to move it: group " + b.Nodes.GroupName + ": " + b.Nodes.Text +
		"; group " + b.VMs.GroupName + ": " + b.VMs.Text + "; hard rules come first, then rules for nodes"
}

// InBoth are the VMs that are candidates by a rule of either scope, in the order of the candidates (oVirt, "soft host to VM
// affinity": such a VM is worth a warning).
func InBoth(candidates []Candidate) []Both {
	var all []Both
	seen := make(map[string][]Breach) // by VM: the first breach of each scope
	for i := range candidates {
		c := &candidates[i]
		if slices.ContainsFunc(seen[c.VM], func(b Breach) bool { return b.Scope == c.Breach.Scope }) {
			continue
		}
		seen[c.VM] = append(seen[c.VM], c.Breach)
		if first := seen[c.VM]; len(first) == 2 {
			both := Both{VM: c.VM, Nodes: first[0], VMs: first[1]}
			if both.Nodes.Scope != OfNodes {
				both.Nodes, both.VMs = both.VMs, both.Nodes
			}
			all = append(all, both)
		}
	}
	return all
}
