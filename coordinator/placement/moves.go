package placement

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/selector"
	"berth/coordinator/view"
	"berth/shared/units"
)

// displaced is a VM that would have to move so that the request fits on its node.
type displaced struct {
	node       int
	allocation *view.Allocation
}

// moves finds the smallest VM whose move to another node alone makes room for the request, if there is one. All constraints
// must allow the move; with local storage there is none.
func (r remedies) moves(v *view.View) []Change {
	in := &r.input
	if _, settings, _ := v.Cluster(in.Columns.Cluster); settings.Storage == model.LocalStorage || in.Headroom != nil {
		return nil // with spare nodes, the effect of two moves cannot be tried here
	}
	mover := r.trial()
	trial := r.trial()
	for _, one := range selector.Best(slices.Values(r.inTheWay(v)), maxTries, func(a, b displaced) int {
		return cmp.Or(cmp.Compare(a.allocation.Memory, b.allocation.Memory), cmp.Compare(a.allocation.Name, b.allocation.Name),
			cmp.Compare(a.allocation.VM, b.allocation.VM), cmp.Compare(a.node, b.node))
	}) {
		id, vm := in.Columns.IDs[one.node], one.allocation
		reduced := v.Without(vm.VM, id)
		if !trial.takesAlone(reduced.ColumnsOf(in.Columns.Cluster, []*view.NodeView{reduced.Node(id)})) {
			continue
		}
		to := mover.roomiest(in.Columns, vm, one.node)
		if to < 0 {
			continue
		}
		return []Change{{
			Kind: ChangeMove, Node: id, VM: vm.VM, To: in.Columns.IDs[to],
			Text: fmt.Sprintf("with VM %s moved from %s to %s, %s would take it",
				cmp.Or(vm.Name, vm.VM), in.Name(one.node), in.Name(to), in.Name(one.node)),
		}}
	}
	return nil
}

// takesAlone tells whether the only node of the columns would take the request.
func (t *trial) takesAlone(columns *view.Columns) bool {
	t.prepare(columns, t.asked.at, t.asked.request, 0)
	t.input.Resolve()
	t.input.Belong(t.asked.request.VM, t.asked.request.Labels, t.asked.request.along())
	return t.choose().Node == 0
}

// inTheWay is the VMs that may move and have the memory that is missing: they are Berth's, not on their way, not immovable,
// not tied to the node by a disk, and in no group with the VMs to be placed, from which they should not be separated.
func (r remedies) inTheWay(view *view.View) []displaced {
	in := &r.input
	most, second := r.roomiestTwo()
	var found []displaced
	for node := range r.out {
		left, only := r.memoryLeft(node)
		if !only {
			continue
		}
		room := most
		if in.Columns.Room.At(node) == most {
			room = second
		}
		viewed := view.Node(in.Columns.IDs[node])
		short := in.Memory + in.Columns.Overhead[node] - left
		for i := range viewed.Allocations {
			one := &viewed.Allocations[i]
			stays := one.Foreign || one.InFlight || one.Leaving || one.Fixed || one.VM == r.request.VM || view.Anchored(one.VM)
			if !stays && one.Memory > short && one.Memory < room && !r.companion(one) {
				found = append(found, displaced{node: node, allocation: one})
			}
		}
	}
	return found
}

// companion tells whether a VM comes along, or shares a group of VMs with those to be placed.
func (r remedies) companion(vm *view.Allocation) bool {
	if slices.Contains(r.request.along(), vm.VM) {
		return true
	}
	in := &r.input
	for i, group := range in.Columns.Groups.All() {
		if group.VMsRule.Enabled() && in.Columns.Groups.Has(i, vm.VM, vm.Labels) &&
			slices.ContainsFunc(in.Groups, func(m rule.Membership) bool { return m.Group == group.ID }) {
			return true
		}
	}
	return false
}

// roomiestTwo is the two largest rooms of any nodes.
func (r remedies) roomiestTwo() (most, second units.Bytes) {
	for _, room := range r.input.Columns.Room.All() {
		switch {
		case room > most:
			most, second = room, most
		case room > second:
			second = room
		}
	}
	return most, second
}

// roomiest is the node with most room that would take a VM, other than its own; -1 if there is none. The node that the
// request's VM would leave does not count, because its memory is not free before the other VM has moved.
func (t *trial) roomiest(columns *view.Columns, vm *view.Allocation, except int) int {
	t.prepare(columns, t.asked.at, &Request{Purpose: ForMigrate, VM: vm.VM, Memory: vm.Memory, VCPUs: vm.VCPUs}, 0)
	t.input.Belong(vm.VM, vm.Labels, nil)
	t.filter()
	found := -1
	for node, out := range t.out {
		if !out && node != except && columns.IDs[node] != t.asked.input.Current && (found < 0 || columns.Room.At(node) > columns.Room.At(found)) {
			found = node
		}
	}
	return found
}
