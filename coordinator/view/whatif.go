package view

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Node finds a node by ID. It is nil when the view has no such node.
func (v *View) Node(id string) *NodeView {
	if at, found := v.search(id); found {
		return v.Nodes.At(at)
	}
	return nil
}

// NodeByName finds a node by name. It is nil when the view has no such node.
func (v *View) NodeByName(name string) *NodeView {
	for _, node := range v.Nodes.All() {
		if node.Node.Name == name {
			return node
		}
	}
	return nil
}

func (v *View) search(id string) (int, bool) { return v.Nodes.search(id) }

// origin is the view that has the records: a what-if has only what differs.
func (v *View) origin() *View {
	for v.base != nil {
		v = v.base
	}
	return v
}

// Without is the view as if the VM were not on the node: the VM left out of its own node's figures, so that staying
// there is judged like going anywhere else. The view itself is unchanged; the other nodes are shared.
//
// Memory that the VM has now is free again, and its CPU use is taken off the load. What could not be read of it is not
// given back, so the figures are never better than the truth.
func (v *View) Without(vm, node string) *View {
	at, found := v.search(node)
	if !found {
		return v
	}
	reduced, gone := v.Nodes.At(at).without(vm)
	if gone == nil {
		return v
	}
	return &View{
		At: v.At, Index: v.Index, Nodes: v.Nodes.with(map[int]*NodeView{at: reduced}), clusters: v.clusters, gathered: newGathered(),
		base: v, reduced: reduced, gone: gone,
	}
}

// With is the view as if a live operation held room on a node for a VM that is nowhere yet. It is false where more than the
// node would differ: the VM is somewhere, or volumes belong to it. The view itself is unchanged; the other nodes are shared.
func (v *View) With(vm model.VM, held model.Reservation) (*View, bool) {
	at, found := v.search(held.Node)
	if !found || v.base != nil || v.somewhere(held.VM) || vm.Holder != "" || len(vm.Disks)+len(held.Volumes) > 0 {
		return v, false
	}
	node := v.Nodes.At(at)
	charged := node.with(&vm, held, v.clusterOf(node.Node).Settings.PhysicalLedger)
	return &View{
		At: v.At, Index: v.Index, Nodes: v.Nodes.with(map[int]*NodeView{at: charged}), clusters: v.clusters,
		gathered: v.gathered.later(map[string][]string{node.Node.ClusterName(): {held.Node}}),
		held:     v.held, strays: v.strays, words: v.words, storage: v.storage, roster: v.roster.with(&vm, held.Node),
	}, true
}

// somewhere tells whether any node has an allocation of a VM.
func (v *View) somewhere(vm string) bool {
	record := v.roster.vms.ByID(vm)
	return record != nil && record.Holder != "" || len(v.held.of[vm])+len(v.strays.on(vm)) > 0 ||
		slices.ContainsFunc(v.roster.coming, func(c coming) bool { return c.vm.ID == vm })
}

// with is the node with one reservation more, of a VM that it has no allocation of.
func (n *NodeView) with(vm *model.VM, held model.Reservation, ledger model.Ledger) *NodeView {
	claim := chargeOfReservation(held, vm)
	one := merge([]charge{claim}, n.Facts, ledger)[0]
	at, _ := slices.BinarySearchFunc(n.Allocations, one.VM, func(a Allocation, id string) int { return cmp.Compare(a.VM, id) })
	charged := *n
	charged.Allocations = slices.Insert(slices.Clone(n.Allocations), at, one)
	charged.widest = max(n.widest, one.VCPUs)
	charged.PromisedUsed, charged.VCPUsUsed = add(n.PromisedUsed, one.Memory), n.VCPUsUsed+one.VCPUs
	if n.PhysicalKnown {
		charged.PhysicalFree = add(n.PhysicalFree, -one.physicalCharge())
	}
	return &charged
}

// without is the node without the VM, and the VM's allocation, which is nil if it has none there.
func (n *NodeView) without(vm string) (reduced *NodeView, gone *Allocation) {
	at, found := slices.BinarySearchFunc(n.Allocations, vm, func(a Allocation, id string) int {
		return cmp.Compare(a.VM, id)
	})
	if !found {
		return n, nil
	}
	copied := *n
	reduced, gone = &copied, &n.Allocations[at]
	reduced.Allocations = slices.Delete(slices.Clone(n.Allocations), at, at+1)
	reduced.PromisedUsed, reduced.VCPUsUsed = 0, n.VCPUsUsed-gone.VCPUs
	for i := range reduced.Allocations { // summed anew: a saturated sum cannot be taken back
		reduced.PromisedUsed = add(reduced.PromisedUsed, reduced.Allocations[i].Memory)
	}
	domain := n.Facts.Domain(vm)
	if n.PhysicalKnown {
		reduced.PhysicalFree = add(reduced.PhysicalFree, gone.Frees)
		if domain != nil { // what its balloon holds back is nobody's once it is gone
			reduced.Borrowed = add(reduced.Borrowed, -min(ballooned(domain), n.Borrowed))
		}
	}
	if gone.CPU > 0 {
		reduced.Facts.Load1 = lessened(n.Facts.Load1, gone.CPU)
		if n.Facts.CPUs > 0 {
			reduced.Facts.CPUBusy = lessened(n.Facts.CPUBusy, gone.CPU/float64(n.Facts.CPUs))
		}
	}
	return reduced, gone
}

func lessened(figure *float64, by float64) *float64 {
	if figure == nil {
		return nil
	}
	less := max(0, *figure-by)
	return &less
}
