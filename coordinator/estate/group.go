package estate

import (
	"berth/coordinator/affinity"
	"berth/coordinator/cluster"
)

// GroupsOf are the groups of a cluster, by name, with everything that carries one of their labels among the members. VMs are
// in the cluster of their VDC, whether they run or not. What it returns shares memory with the facts.
func GroupsOf(facts Facts, clusterName string) []cluster.Group {
	var groups []cluster.Group
	records := facts.Resources(cluster.KindGroup)
	for i := range records {
		if name, known := clusterNamed(facts, records[i].Links[LinkCluster]); known && name == clusterName {
			groups = append(groups, cluster.GroupOf(&records[i], name))
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return cluster.Expand(groups, vmsOf(facts, clusterName), nodesOf(facts, clusterName))
}

// Conflicts are the contradictions among the groups of a cluster, and what it cannot hold, in words with names. Those with an
// error may not be saved, and no state that this package let through has one.
func Conflicts(facts Facts, clusterName string) []affinity.Conflict {
	groups := GroupsOf(facts, clusterName)
	if len(groups) == 0 {
		return nil
	}
	names := memberNames(facts)
	var rooms []affinity.Room
	for _, node := range nodesOf(facts, clusterName) {
		rooms = append(rooms, affinity.Room{Node: node.ID, Takes: !node.Maintenance})
	}
	return append(affinity.Conflicts(groups, names), affinity.Lint(groups, rooms, names)...)
}

// clusterNamed is the name of the cluster that a link leads to; no link leads to the default one.
func clusterNamed(source Source, id string) (string, bool) {
	if id == "" || id == cluster.DefaultCluster {
		return cluster.DefaultCluster, true
	}
	record, known := source.Resource(id)
	return record.Name, known && record.Kind == cluster.KindCluster
}

// vmsOf are the VMs whose VDC is in the cluster.
func vmsOf(facts Facts, clusterName string) []cluster.VM {
	in := map[string]bool{"": clusterName == cluster.DefaultCluster}
	vdcs := facts.Resources(cluster.KindVDC)
	for i := range vdcs {
		name, known := clusterNamed(facts, vdcs[i].Links[LinkCluster])
		in[vdcs[i].ID] = known && name == clusterName
	}
	all := facts.VMs()
	found := make([]cluster.VM, 0, len(all))
	for i := range all {
		if in[all[i].VDC] {
			found = append(found, all[i])
		}
	}
	return found
}

func nodesOf(facts Facts, clusterName string) []cluster.Node {
	var found []cluster.Node
	for _, node := range facts.Nodes() {
		if node.Cluster == clusterName || node.Cluster == "" && clusterName == cluster.DefaultCluster {
			found = append(found, node)
		}
	}
	return found
}

// memberNames calls VMs and nodes by their names.
func memberNames(facts Facts) affinity.Names {
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
