package operation

import (
	"cmp"
	"maps"
	"slices"

	"berth/coordinator/model"
)

// Orders is what the agents should be doing now, from the record alone. Sending an order again is harmless, because operation
// ID and step identify it. Round counts the questions while judging, so that an old look is never taken for a new one; it
// means nothing in other phases.
func Orders(op Operation, vm model.VM, round uint16) []Order {
	if op.Result == Parked {
		return nil
	}
	if op.Phase == Judging {
		return inspections(op, vm, round)
	}
	now, ordered := op.Kind.traits().phases[op.Phase]
	if !ordered {
		return nil
	}
	order := now.order(&op, &vm)
	order.Node, order.Operation, order.Step, order.VM, order.VMName = now.node(&op), op.ID, op.Step, op.VM, op.VMName
	return []Order{order}
}

// Ahead are all orders that an operation may come to give, by their kind: what a node cannot be told is known before anything begins.
func Ahead(op Operation, vm model.VM) (orders []Order) {
	all := op.Kind.traits().phases
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := all[name]
		node := one.node(&op)
		if node == "" {
			continue
		}
		order := one.order(&op, &vm)
		order.Node, order.Operation, order.VM, order.VMName = node, op.ID, op.VM, op.VMName
		orders = append(orders, order)
	}
	return orders
}

// inspections ask each node what it shows.
func inspections(op Operation, vm model.VM, round uint16) (orders []Order) {
	inspect := Order{Operation: op.ID, Step: op.Step | uint32(round)<<16, VM: op.VM, VMName: op.VMName, Action: ActInspect}
	for _, side := range []struct {
		node  string
		epoch uint64
	}{{op.Source, cmp.Or(op.SourceEpoch, vm.Epoch)}, {op.Target, op.Epoch}} {
		if side.node != "" {
			inspect.Node, inspect.Epoch = side.node, side.epoch
			orders = append(orders, inspect)
		}
	}
	return orders
}
