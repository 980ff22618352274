package estate

import (
	"slices"

	"berth/coordinator/cluster"
)

// InUse is what links to a thing, as kind/name and sorted: what has to go before the thing can. The default cluster is
// used by what names no other one, and a node by the VMs that it holds or whose disks it has.
func InUse(now State, kind cluster.Kind, id string) []string {
	name := id
	if r, known := now.Resource(id); known {
		name = r.Name
	}
	return users(&now, kind, id, name)
}

// users is InUse of a thing that need not be in the state any more.
func users(now *State, kind cluster.Kind, id, name string) []string {
	var users []string
	for i := range now.Resources {
		r := &now.Resources[i]
		form, _ := FormOf(r.Kind)
		for _, link := range form.Links {
			if link.To == kind && linked(r, link) == id {
				users = append(users, ref(r.Kind, r.Name))
			}
		}
	}
	if kind == cluster.KindCluster {
		for i := range now.Nodes {
			if now.Nodes[i].Cluster == name {
				users = append(users, ref(cluster.KindNode, now.Nodes[i].Name))
			}
		}
	}
	for i := range now.VMs {
		if uses(&now.VMs[i], kind, id) {
			users = append(users, ref(cluster.KindVM, now.VMs[i].Name))
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// linked is what a link leads to. A VDC without a cluster is in the default one.
func linked(r *cluster.Resource, link Link) string {
	if id := r.Links[link.Name]; id != "" || link.To != cluster.KindCluster {
		return id
	}
	return cluster.DefaultCluster
}

func uses(vm *cluster.VM, kind cluster.Kind, id string) bool {
	switch kind {
	case cluster.KindCluster:
		return vm.VDC == "" && id == cluster.DefaultCluster
	case cluster.KindVDC:
		return vm.VDC == id
	case cluster.KindOffer:
		return vm.Offer == id
	case cluster.KindImage:
		return vm.Image == id
	case cluster.KindDisk:
		return slices.Contains(vm.Disks, id)
	case cluster.KindNIC:
		return slices.Contains(vm.NICs, id)
	case cluster.KindNode:
		return vm.Holder == id || vm.Home == id
	default:
		return false
	}
}
