package estate

import (
	"cmp"
	"fmt"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/view"
)

// GroupsOf are the groups of a cluster, by name, with everything that carries one of their labels among the members. VMs are
// in the cluster of their VDC, whether they run or not. What it returns shares memory with the facts.
func GroupsOf(facts Facts, clusterName string) []model.Group {
	var groups []model.Group
	records := facts.Resources(model.KindGroup)
	for i := range records {
		if name, known := clusterNamed(facts, records[i].Links[schema.LinkCluster]); known && name == clusterName {
			groups = append(groups, model.GroupOf(&records[i], name))
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return view.Expand(groups, vmsOf(facts, clusterName), nodesOf(facts, clusterName))
}

// Conflicts are the contradictions among the groups of a cluster, and what it cannot hold, in words with names. Those with an
// error may not be saved, and no state that this package let through has one.
func Conflicts(facts Facts, clusterName string) []affinity.Conflict {
	groups := GroupsOf(facts, clusterName)
	if len(groups) == 0 {
		return nil
	}
	names := MemberNames(facts)
	var rooms []affinity.Room
	for _, node := range nodesOf(facts, clusterName) {
		rooms = append(rooms, affinity.Room{Node: node.ID, Takes: !node.Maintenance})
	}
	return append(affinity.Conflicts(groups, names), affinity.Lint(groups, rooms, names)...)
}

// clusterNamed is the name of the cluster that a link leads to; no link leads to the default one.
func clusterNamed(source Source, id string) (string, bool) {
	if id == "" || id == model.DefaultCluster {
		return model.DefaultCluster, true
	}
	record, known := source.Resource(id)
	return record.Name, known && record.Kind == model.KindCluster
}

// vmsOf are the VMs of a cluster: those that are bound to it, and those that may be placed there and are bound to none.
func vmsOf(facts Facts, clusterName string) []model.VM {
	s := scopesOf(facts)
	all := facts.VMs()
	found := make([]model.VM, 0, len(all))
	for i := range all {
		where, err := s.of(&all[i])
		if err != nil || !where.has(clusterName) {
			continue
		}
		if name, _, err := s.settled(&all[i]); err == nil && (name == clusterName || name == "") {
			found = append(found, all[i])
		}
	}
	return found
}

func nodesOf(facts Facts, clusterName string) []model.Node {
	var found []model.Node
	for _, node := range facts.Nodes() {
		if node.Cluster == clusterName || node.Cluster == "" && clusterName == model.DefaultCluster {
			found = append(found, node)
		}
	}
	return found
}

// MemberNames calls VMs and nodes by their names.
func MemberNames(facts Facts) affinity.Names {
	names := make(map[string]string)
	for _, node := range facts.Nodes() {
		names[node.ID] = node.Name
	}
	for _, vm := range facts.VMs() {
		names[vm.ID] = vm.Name
	}
	return func(id string) string {
		if name, known := names[id]; known {
			return name
		}
		return id
	}
}

// group checks that a group's members are of its cluster.
func (c *checker) group(r *model.Resource, subject string) {
	own, known := clusterNamed(c.index, r.Links[schema.LinkCluster])
	if !known {
		return // told already
	}
	elsewhere := func(list, member, there string) {
		c.report(subject, list, fmt.Sprintf("its member %s is in %s, and the group is of cluster %s", member, there, own),
			"take it out of the group first, or leave it in cluster "+own)
	}
	for _, id := range r.Members[model.MembersVMs] {
		if vm := c.vms()[id]; vm != nil {
			if where, err := c.scopes.of(vm); err == nil && !where.has(own) {
				elsewhere(model.MembersVMs, schema.Ref(model.KindVM, vm.Name), where.text())
			}
		}
	}
	for _, id := range r.Members[model.MembersNodes] {
		if node := c.index.nodes[id]; node != nil && cmp.Or(node.Cluster, model.DefaultCluster) != own {
			elsewhere(model.MembersNodes, schema.Ref(model.KindNode, node.Name), "cluster "+node.Cluster)
		}
	}
}

// conflicts tells the contradictions among groups with which they may not be saved.
func (c *checker) conflicts() {
	told := make(map[string]bool)
	for i := range c.now.Resources {
		r := &c.now.Resources[i]
		name, known := clusterNamed(c.index, r.Links[schema.LinkCluster])
		if r.Kind != model.KindGroup || !known || told[name] {
			continue
		}
		told[name] = true
		for _, conflict := range affinity.Conflicts(GroupsOf(c.index, name), MemberNames(c.index)) {
			if conflict.Severity == affinity.Error {
				c.report(schema.Ref(model.KindGroup, firstOf(conflict.Groups)), "", conflict.Text, conflict.Next)
			}
		}
	}
}
