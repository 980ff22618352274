package operation

import "berth/coordinator/model"

// Orders is what the agents should be doing now, from the record alone. Sending an order again is harmless, because operation
// ID and step identify it. Round counts the questions while judging, so that an old look is never taken for a new one; it
// means nothing in other phases.
func Orders(op Operation, vm model.VM, round uint16) []Order {
	base := Order{Operation: op.ID, Step: op.Step, VM: op.VM, VMName: op.VMName}
	at := func(node string, action Action, epoch uint64) Order {
		order := base
		order.Node, order.Action, order.Epoch = node, action, epoch
		return order
	}
	if op.Result == Parked {
		return nil
	}
	switch op.Phase {
	case Marking:
		return []Order{op.markOrder(at)}
	case Dispatched:
		if op.marks() {
			return []Order{op.markOrder(at)}
		}
		if op.Kind == Stop {
			order := at(op.Source, ActStop, vm.Epoch)
			order.Force, order.Grace = op.Force, op.Grace
			return []Order{order}
		}
		order := at(op.Target, ActStart, op.Epoch)
		order.Volumes, order.Persistent = op.Volumes, vm.Persistent
		if order.Spec = vm.Spec; op.Spec != nil {
			order.Spec = *op.Spec
		}
		return []Order{order}
	case Preparing:
		order := at(op.Target, ActPrepare, op.Epoch)
		order.Spec, order.Volumes = vm.Spec, op.Volumes
		return []Order{order}
	case Copying:
		order := at(op.Source, ActMigrate, vm.Epoch)
		order.Spec = vm.Spec
		order.TargetEpoch, order.TargetNode, order.TargetURI = op.Epoch, op.Target, op.TargetURI
		order.TargetHost = op.TargetHost
		order.Bandwidth, order.Deadline = op.Bandwidth, op.Deadline
		order.CopyStorage, order.Replaced, order.Volumes = op.CopyStorage, op.Replaced, op.Volumes
		return []Order{order}
	case Judging:
		base.Step |= uint32(round) << 16
		var orders []Order
		if op.Source != "" {
			orders = append(orders, at(op.Source, ActInspect, op.sourceEpoch(vm)))
		}
		if op.Target != "" {
			orders = append(orders, at(op.Target, ActInspect, op.Epoch))
		}
		return orders
	case HandedOver:
		return []Order{at(op.Target, ActResume, op.Epoch)}
	case Discarding:
		order := at(op.Leftover, ActDiscard, op.leftoverEpoch())
		if op.Leftover == op.Target {
			order.Volumes = op.Volumes // a source's volumes are cleared later, when its domain does not use them any more
		}
		return []Order{order}
	case Reverting:
		return []Order{at(op.Source, ActResume, op.SourceEpoch)}
	case Clearing:
		order := at(op.Leftover, ActClear, op.leftoverEpoch())
		order.Volumes = op.cleared()
		return []Order{order}
	default:
		return nil
	}
}

// leftoverEpoch is the epoch of what is discarded or cleared.
func (o *Operation) leftoverEpoch() uint64 {
	if o.Kind == Migrate && o.Leftover == o.Source {
		return o.SourceEpoch
	}
	return o.Epoch
}

// cleared is the volumes that phase Clearing removes.
func (o *Operation) cleared() []model.VolumeOrder {
	if o.Leftover == o.Source {
		return o.Replaced
	}
	return o.Volumes
}

func (o *Operation) sourceEpoch(vm model.VM) uint64 {
	if o.Kind == Migrate {
		return o.SourceEpoch
	}
	return vm.Epoch
}
