package estate

import (
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// InUse is what links to a thing, as kind/name and sorted: what has to go before the thing can. The default cluster is
// used by what names no other one, and a node by the VMs that it holds or whose disks it has, and by what has its volume there.
func InUse(now State, kind model.Kind, id string) []string {
	name := id
	if r, known := now.Resource(id); known {
		name = r.Name
	}
	return usersOf(&now).of(kind, id, name)
}

// users has what links to each thing. Nodes name their cluster by its name, everything else is named by ID.
type users struct {
	byID, byCluster map[string][]string
}

func usersOf(now *State) *users {
	u := &users{byID: make(map[string][]string), byCluster: make(map[string][]string)}
	for i := range now.Resources {
		u.resource(&now.Resources[i])
	}
	for i := range now.Nodes {
		n := &now.Nodes[i]
		u.byCluster[n.Cluster] = append(u.byCluster[n.Cluster], schema.Ref(model.KindNode, n.Name))
	}
	for i := range now.VMs {
		u.vm(&now.VMs[i])
	}
	return u
}

// of is what uses a thing.
func (u *users) of(kind model.Kind, id, name string) []string {
	used := slices.Clone(u.byID[id])
	if kind == model.KindCluster {
		used = append(used, u.byCluster[name]...)
	}
	slices.Sort(used)
	return slices.Compact(used)
}

func (u *users) add(id, subject string) {
	if id != "" {
		u.byID[id] = append(u.byID[id], subject)
	}
}

func (u *users) resource(r *model.Resource) {
	form, _ := schema.FormOf(r.Kind)
	for _, link := range form.Links {
		id := r.Links[link.Name]
		if id == "" && link.To == model.KindCluster && r.Links[schema.LinkPod] == "" && r.Links[schema.LinkZone] == "" {
			id = model.DefaultCluster // where a VDC is that names none
		}
		u.add(id, schema.Ref(r.Kind, r.Name))
	}
	u.volume(r)
}

// volume adds what a disk's or an image's volumes need: their pools and, in local ones, the nodes that have them.
func (u *users) volume(r *model.Resource) {
	for volume := range r.Volumes() {
		u.add(volume.Pool, schema.Ref(r.Kind, r.Name))
		for _, node := range volume.Nodes {
			u.add(node, schema.Ref(r.Kind, r.Name))
		}
	}
}

func (u *users) vm(vm *model.VM) {
	subject := schema.Ref(model.KindVM, vm.Name)
	if vm.VDC == "" && vm.Within == "" {
		u.add(model.DefaultCluster, subject)
	}
	for _, id := range []string{vm.VDC, vm.Within, vm.Offer, vm.Image, vm.Holder, vm.Home, vm.Bound} {
		u.add(id, subject)
	}
	for _, id := range slices.Concat(vm.Disks, vm.NICs) {
		u.add(id, subject)
	}
}
