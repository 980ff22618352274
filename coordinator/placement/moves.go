package placement

import (
	"cmp"
	"fmt"

	"berth/coordinator/cluster"
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
	if _, settings, _ := view.Cluster(in.Columns.Cluster); settings.Storage == cluster.LocalStorage {
		return nil
	}
	mover := e.trial()
	trial := e.trial()
	for _, one := range best(e.inTheWay(view), maxTries, func(a, b displaced) int {
		return cmp.Or(cmp.Compare(a.allocation.Memory, b.allocation.Memory), cmp.Compare(a.allocation.Name, b.allocation.Name),
			cmp.Compare(a.allocation.VM, b.allocation.VM), cmp.Compare(a.node, b.node))
	}) {
		id, vm := in.Columns.IDs[one.node], one.allocation
		reduced := view.Without(vm.VM, id)
		alone := reduced.ColumnsOf(in.Columns.Cluster, []*cluster.NodeView{reduced.Node(id)})
		if !trial.takes(alone, e.at, e.request, nil) {
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

// inTheWay are the VMs whose memory is what is missing: Berth's own, and not on their way already.
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
			if !one.Foreign && !one.InFlight && one.VM != e.request.VM && one.Memory > short && one.Memory < room {
				found = append(found, displaced{node: node, allocation: one})
			}
		}
	}
	return found
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
	e.filter()
	found := -1
	for node, out := range e.out {
		if !out && node != except && columns.IDs[node] != asked.input.Current && (found < 0 || columns.Room[node] > columns.Room[found]) {
			found = node
		}
	}
	return found
}
