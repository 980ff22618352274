// Package naming says by what the records of the state are found, and which others they name: a pure function of each record, apart from
// the tables that are kept by it.
package naming

import (
	"maps"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// LinksOfVM are the IDs of the resources that a VM names, empty ones among them.
func LinksOfVM(vm *model.VM) []string {
	return slices.Concat([]string{vm.VDC, vm.Offer, vm.Image, vm.Within}, vm.Disks, vm.NICs)
}

// PartsOfVM are the IDs of the resources that no other VM may have.
func PartsOfVM(vm *model.VM) []string { return slices.Concat(vm.Disks, vm.NICs) }

// MarksOfVM are the marks of a VM.
func MarksOfVM(vm *model.VM) []string {
	var marks []string
	for _, mark := range vm.Marks() {
		marks = append(marks, string(mark))
	}
	return marks
}

// LinksOf are the IDs of the resources that a resource names.
func LinksOf(r *model.Resource) []string {
	links := slices.Collect(maps.Values(r.Links))
	for volume := range r.Volumes() {
		links = append(links, volume.Pool)
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// ImpliedLink tells whether a link needs no record: there is none, or it leads to what is there undeclared.
func ImpliedLink(link string) bool {
	return link == "" || link == model.DefaultCluster || strings.HasPrefix(link, model.BuiltIn)
}

// MembersOf are the IDs of the VMs and nodes that a resource has in its lists. What a list is for, and whether it may hold
// one or the other, is not the state's to know.
func MembersOf(r *model.Resource) []string {
	return slices.Concat(slices.Collect(maps.Values(r.Members))...)
}

// VolumeNodes are the IDs of the nodes that have a resource's volumes, in local pools.
func VolumeNodes(r *model.Resource) []string {
	if len(r.Copies) == 0 && r.Volume != nil {
		return r.Volume.Nodes
	}
	var nodes []string
	for volume := range r.Volumes() {
		nodes = append(nodes, volume.Nodes...)
	}
	return nodes
}

// OfResource is unique among resources. Kinds hold no slash.
func OfResource(kind model.Kind, name string) string { return string(kind) + "/" + name }

// OfIdentity is unique among live operators, so that a name in the history stands for one of them. Kinds hold no slash.
func OfIdentity(kind model.IdentityKind, name string) string { return string(kind) + "/" + name }

// KeysOf are the hashes of the keys of an identity.
func KeysOf(i *model.Identity) []string {
	hashes := make([]string, len(i.Keys))
	for n := range i.Keys {
		hashes[n] = i.Keys[n].Hash
	}
	return hashes
}
