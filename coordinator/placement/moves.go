package placement

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// displaced is a VM that would have to move for the request to fit on its node.
type displaced struct {
	node       int
	allocation *cluster.Allocation
}

// moves finds the smallest VM whose move to another node makes room for the request on its own, if there is one. The VM
// moves only where all constraints let it; with local storage none does.
func (e *Engine) moves(view *cluster.View) []Change {
	in := &e.input
	if _, settings, _ := view.Cluster(in.Columns.Cluster); settings.Storage == cluster.LocalStorage || in.Headroom != nil {
		return nil // with spare nodes, what is free after two moves is more than is tried out here
	}
	mover := e.trial()
	trial := e.trial()
	for _, one := range best(e.inTheWay(view), maxTries, func(a, b displaced) int {
		return cmp.Or(cmp.Compare(a.allocation.Memory, b.allocation.Memory), cmp.Compare(a.allocation.Name, b.allocation.Name),
			cmp.Compare(a.allocation.VM, b.allocation.VM), cmp.Compare(a.node, b.node))
	}) {
		id, vm := in.Columns.IDs[one.node], one.allocation
		reduced := view.Without(vm.VM, id)
		if !trial.takesAlone(reduced.ColumnsOf(in.Columns.Cluster, []*cluster.NodeView{reduced.Node(id)}), e) {
			continue
		}
		to := mover.roomiest(in.Columns, e, vm, one.node)
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

// takesAlone tells whether the only node of the columns would take another engine's request.
func (e *Engine) takesAlone(columns *cluster.Columns, asked *Engine) bool {
	e.prepare(columns, asked.at, asked.request, 0)
	e.input.Resolve()
	e.input.Belong(asked.request.VM, asked.request.Labels, asked.request.along())
	return e.choose().Node == 0
}

// inTheWay are the VMs whose memory is what is missing and that may move: Berth's own, not on their way already, not
// immovable nor tied to the node by a disk, and in no group with those that are placed, which had better not be parted for them.
func (e *Engine) inTheWay(view *cluster.View) []displaced {
	in := &e.input
	most, second := e.roomiestTwo()
	var found []displaced
	for node := range e.out {
		left, only := e.memoryLeft(node)
		if !only {
			continue
		}
		room := most
		if in.Columns.Room[node] == most {
			room = second
		}
		viewed := view.Node(in.Columns.IDs[node])
		short := in.Memory + in.Columns.Overhead[node] - left
		for i := range viewed.Allocations {
			one := &viewed.Allocations[i]
			stays := one.Foreign || one.InFlight || one.Leaving || one.Fixed || one.VM == e.request.VM || view.Anchored(one.VM)
			if !stays && one.Memory > short && one.Memory < room && !e.companion(one) {
				found = append(found, displaced{node: node, allocation: one})
			}
		}
	}
	return found
}

// companion tells whether a VM comes along, or is in a group of VMs with those that are placed.
func (e *Engine) companion(vm *cluster.Allocation) bool {
	if slices.Contains(e.request.along(), vm.VM) {
		return true
	}
	in := &e.input
	for i, group := range in.Columns.Groups.All() {
		if group.VMsRule.Enabled() && in.Columns.Groups.Has(i, vm.VM, vm.Labels) &&
			slices.ContainsFunc(in.Groups, func(m rule.Membership) bool { return m.Group == group.ID }) {
			return true
		}
	}
	return false
}

// roomiestTwo are the largest rooms of any two nodes.
func (e *Engine) roomiestTwo() (most, second units.Bytes) {
	for _, room := range e.input.Columns.Room {
		switch {
		case room > most:
			most, second = room, most
		case room > second:
			second = room
		}
	}
	return most, second
}

// roomiest is the node with most room that would take a VM, another one than it runs on; -1 if there is none. Nor is it the
// node that the request's own VM would leave: its memory there is not free before the other one has moved.
func (e *Engine) roomiest(columns *cluster.Columns, asked *Engine, vm *cluster.Allocation, except int) int {
	e.prepare(columns, asked.at, &Request{Purpose: ForMigrate, VM: vm.VM, Memory: vm.Memory, VCPUs: vm.VCPUs}, 0)
	e.input.Belong(vm.VM, vm.Labels, nil)
	e.filter()
	found := -1
	for node, out := range e.out {
		if !out && node != except && columns.IDs[node] != asked.input.Current && (found < 0 || columns.Room[node] > columns.Room[found]) {
			found = node
		}
	}
	return found
}
