package state

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/state/naming"
)

// The estate's records name each other by ID, and nodes name their cluster. Here is only compared: what is named exists,
// and nothing goes that is named. What kind of resource a link may lead to is not the state's to know.

// dangling refuses a link to a resource that does not exist. The change was decided when the resource still existed.
func (w *write) dangling(of string, links []string) *Refusal {
	for _, link := range links {
		if !naming.ImpliedLink(link) && w.row(string(Resources), link) == nil {
			return &Refusal{
				Code: Stale, Table: Resources, ID: link,
				Message: fmt.Sprintf("%s names resource %q, which does not exist (any more)", of, link),
			}
		}
	}
	return nil
}

// checkLinksOfVM refuses links to nowhere, and a disk or NIC that another VM has.
func (w *write) checkLinksOfVM(id string) *Refusal {
	vm, exists := get[model.VM](w.tables, string(VMs), id)
	if !exists {
		return nil
	}
	if refusal := w.dangling(called("VM", vm.Name), naming.LinksOfVM(vm)); refusal != nil {
		return refusal
	}
	for _, node := range vm.Preferred {
		if w.row(string(Nodes), node) == nil {
			return w.gone(Nodes, node, called("VM", vm.Name)+" prefers")
		}
	}
	for _, part := range naming.PartsOfVM(vm) {
		for other := range each[model.VM](w.tables, string(VMs), byLink, text(part)) {
			if other.ID != id && slices.Contains(naming.PartsOfVM(other), part) {
				return w.inUse(part, called("VM", other.Name))
			}
		}
	}
	return nil
}

// checkResource refuses links to nowhere of a resource that was put, and the end of one that something names.
func (w *write) checkResource(id string) *Refusal {
	resource, exists := get[model.Resource](w.tables, string(Resources), id)
	if exists {
		if refusal := w.dangling(called(string(resource.Kind), resource.Name), naming.LinksOf(resource)); refusal != nil {
			return refusal
		}
		for _, member := range naming.MembersOf(resource) {
			if w.row(string(VMs), member) == nil && w.row(string(Nodes), member) == nil {
				return w.gone(VMs, member, called(string(resource.Kind), resource.Name)+" has the member")
			}
		}
		for _, node := range naming.VolumeNodes(resource) {
			if w.row(string(Nodes), node) == nil {
				return w.gone(Nodes, node, called(string(resource.Kind), resource.Name)+" has its volume on")
			}
		}
	} else {
		for other := range each[model.Resource](w.tables, string(Resources), byLink, text(id)) {
			return w.inUse(id, called(string(other.Kind), other.Name))
		}
		for other := range each[model.VM](w.tables, string(VMs), byLink, text(id)) {
			return w.inUse(id, called("VM", other.Name))
		}
	}
	return w.checkClusterGone(id)
}

// checkClusterGone refuses to take a cluster's name from the nodes that name it, by deletion or by another name.
func (w *write) checkClusterGone(id string) *Refusal {
	before, existed := w.before(w.begun, string(Resources), id).(*model.Resource)
	if !existed || before.Kind != model.KindCluster || w.declared(before.Name) {
		return nil
	}
	for node := range each[model.Node](w.tables, string(Nodes), byCluster, text(before.Name)) {
		return w.inUse(id, called("node", node.Name))
	}
	return nil
}

// checkClusterOf refuses a node in a cluster that does not exist. The default cluster is there without a record.
func (w *write) checkClusterOf(id string) *Refusal {
	node, exists := get[model.Node](w.tables, string(Nodes), id)
	if !exists || node.Cluster == "" || node.Cluster == model.DefaultCluster || w.declared(node.Cluster) {
		return nil
	}
	return &Refusal{
		Code: Stale, Table: Nodes, ID: id,
		Message: fmt.Sprintf("%s is in cluster %q, which does not exist (any more)", called("node", node.Name), node.Cluster),
	}
}

// declared tells whether a cluster of that name has a record.
func (w *write) declared(name string) bool {
	for range each[model.Resource](w.tables, string(Resources), byName, text(naming.OfResource(model.KindCluster, name))) {
		return true
	}
	return false
}

// inUse refuses to take a resource from what has it.
func (w *write) inUse(id, by string) *Refusal {
	what := fmt.Sprintf("resource %q", id)
	if resource, known := w.before(w.begun, string(Resources), id).(*model.Resource); known {
		what = called(string(resource.Kind), resource.Name)
	}
	return &Refusal{Code: InUse, Table: Resources, ID: id, Message: fmt.Sprintf("%s is in use by %s", what, by)}
}

func called(what, name string) string { return fmt.Sprintf("%s %q", what, name) }
