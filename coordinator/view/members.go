package view

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Expand is the groups with everything that carries one of their labels among the members, in the order of their names. VMs
// and nodes are those of the groups' cluster; members that are none of them are left out.
func Expand(groups []model.Group, vms []model.VM, nodes []model.Node) []model.Group {
	var knownVMs, knownNodes carriers
	for i := range vms {
		knownVMs.know(vms[i].ID, vms[i].Labels)
	}
	for i := range nodes {
		knownNodes.know(nodes[i].ID, nodes[i].Labels)
	}
	expanded := expand(groups, &knownVMs, &knownNodes)
	slices.SortFunc(expanded, func(a, b model.Group) int { return cmp.Compare(a.Name, b.Name) })
	return expanded
}

// expand is the groups in their order with their members listed.
func expand(groups []model.Group, vms, nodes *carriers) []model.Group {
	expanded := slices.Clone(groups)
	for i := range expanded {
		g := &expanded[i]
		g.VMs, g.Nodes = vms.members(g.VMs, g.VMLabels), nodes.members(g.Nodes, g.NodeLabels)
	}
	return expanded
}

// carriers are VMs or nodes by what makes them members of a group.
type carriers struct {
	there func(id string) bool // nil: those that are known
	known map[string]bool
	by    map[string][]string // IDs by label
}

func (c *carriers) know(id string, labels []string) {
	if c.known == nil {
		c.known = make(map[string]bool)
	}
	c.known[id] = true
	c.carry(id, labels)
}

func (c *carriers) carry(id string, labels []string) {
	if c.by == nil && len(labels) > 0 {
		c.by = make(map[string][]string)
	}
	for _, label := range labels {
		c.by[label] = append(c.by[label], id)
	}
}

// members are those that are listed and there, and those that carry one of the labels, ascending.
func (c *carriers) members(listed, labels []string) []string {
	var members []string
	for _, id := range listed {
		if c.known[id] || c.there != nil && c.there(id) {
			members = append(members, id)
		}
	}
	for _, label := range labels {
		members = append(members, c.by[label]...)
	}
	slices.Sort(members)
	return slices.Compact(members)
}
