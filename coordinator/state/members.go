package state

import (
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/model"
)

// forget takes the VMs and nodes that were deleted out of the members of all resources, and the nodes out of what VMs
// prefer and out of the volumes that other nodes have too. The state does this, not the caller that deletes them: a group that
// takes a VM in meanwhile would keep it for ever.
// The command's own records come afterwards and stay as they are.
func (w *write) forget(deleted []Record) {
	gone := make(map[string]bool)
	resources := make(map[string]*model.Resource)
	nodes := false
	for _, record := range deleted {
		if record.Table != VMs && record.Table != Nodes {
			continue
		}
		gone[record.ID] = true
		nodes = nodes || record.Table == Nodes
		for resource := range each[model.Resource](w.tables, string(Resources), byMember, text(record.ID)) {
			resources[resource.ID] = resource
		}
	}
	isGone := func(id string) bool { return gone[id] }
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		changed := cloneResource(resources[id])
		for name, list := range changed.Members {
			if list = slices.DeleteFunc(list, isGone); len(list) == 0 {
				delete(changed.Members, name)
			} else {
				changed.Members[name] = list
			}
		}
		if len(changed.Members) == 0 {
			changed.Members = nil // as a restored record has it
		}
		changed.Revision = w.index
		put(w, string(Resources), id, &changed)
	}
	if nodes {
		w.forgetCopies(isGone)
		w.forgetPreferred(isGone)
	}
}

// forgetCopies takes nodes from volumes that others have too: images are on all nodes of a local pool. The last one that has
// a volume stays, and so is not deleted.
func (w *write) forgetCopies(isGone func(node string) bool) {
	var copies []*model.Resource
	for resource := range each[model.Resource](w.tables, string(Resources), byID, "") {
		for volume := range resource.Volumes() {
			if shrinks(volume, isGone) {
				copies = append(copies, resource)
				break
			}
		}
	}
	for _, resource := range copies {
		changed := cloneResource(resource)
		for volume := range changed.Volumes() {
			if shrinks(volume, isGone) {
				volume.Nodes = slices.DeleteFunc(volume.Nodes, isGone)
			}
		}
		changed.Revision = w.index
		put(w, string(Resources), changed.ID, &changed)
	}
}

// shrinks tells whether some of the nodes that have a volume go, and others stay.
func shrinks(volume *model.Volume, isGone func(node string) bool) bool {
	return slices.ContainsFunc(volume.Nodes, isGone) && slices.ContainsFunc(volume.Nodes, func(id string) bool { return !isGone(id) })
}

// forgetPreferred looks at every VM: nodes go rarely, and an index would cost every start.
func (w *write) forgetPreferred(isGone func(node string) bool) {
	var prefer []*model.VM
	for vm := range each[model.VM](w.tables, string(VMs), byID, "") {
		if slices.ContainsFunc(vm.Preferred, isGone) {
			prefer = append(prefer, vm)
		}
	}
	for _, vm := range prefer {
		changed := cloneVM(vm)
		if changed.Preferred = slices.DeleteFunc(changed.Preferred, isGone); len(changed.Preferred) == 0 {
			changed.Preferred = nil
		}
		changed.Revision = w.index
		put(w, string(VMs), changed.ID, &changed)
	}
}

// gone refuses to name a VM or a node that does not exist. The change was decided when it still existed.
func (w *write) gone(table Table, id, named string) *Refusal {
	return &Refusal{
		Code: Stale, Table: table, ID: id,
		Message: fmt.Sprintf("%s %q, which does not exist (any more)", named, id),
	}
}
