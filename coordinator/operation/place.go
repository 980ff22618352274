package operation

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
)

// Target is what a decision found for a start.
type Target struct {
	Node     string // ID
	Name     string
	Decision string      // ID
	Behind   int         // how many other starts come first there; 0: it may begin
	Sticky   []model.Key // the node's sticky keys, which the VM gets

	// Resident are the customer keys that the decision was made with, and Owner is their owner. From now on other VMs meet
	// them, because the reservation counts like the VM.
	Resident []model.ResidentKey
	Owner    model.Owner

	// These are for the operation's fields of the same names. They depend on the node: another one may be in another cluster
	// with other pools.
	Spec           *model.VMSpec
	MakesHome      bool
	Volumes        []model.VolumeOrder
	CPU, PassedCPU string
	Boot           string // of the node's host; empty: not known
}

// Place gives a start its next node. The VM's LastEpoch must be the number before the new epoch. A node on which its turn never came was
// no attempt: it was given no order.
func Place(op Operation, vm model.VM, target Target, at time.Time) Next {
	if op.Phase == Queued {
		op.Attempt--
		op.Message = ""
		op.Evidence = append(slices.Clone(op.Evidence), "its turn never came on "+op.TargetName+", which does not answer starts")
	}
	vm.LastEpoch++
	op.Target, op.TargetName, op.Decision, op.Sticky = target.Node, target.Name, target.Decision, target.Sticky
	op.Spec, op.MakesHome, op.Volumes, op.CPU, op.PassedCPU = target.Spec, target.MakesHome, target.Volumes, target.CPU, target.PassedCPU
	op.Epoch, op.TargetBoot = vm.LastEpoch, target.Boot
	op.Attempt++
	op.Step++
	op.Phase = Dispatched
	if target.Behind > 0 {
		op.Phase = Queued
		op.Message = fmt.Sprintf("waits for its turn: %d other starts come first on %s", target.Behind, target.Name)
	}
	op.UpdatedAt = at
	vm.Decision, vm.Resident, vm.Owner = target.Decision, target.Resident, target.Owner
	return Next{Operation: op, VM: vm}
}

// Dispatch begins a queued start.
func Dispatch(op Operation, vm model.VM, at time.Time) Next {
	t := newTransition(op, vm, at)
	t.Operation.Message = ""
	t.enter(Dispatched)
	return t.Next
}

// Abandon ends a start that has given no order: it is queued, or no node is left for it.
func Abandon(op Operation, vm model.VM, why string, at time.Time) Next {
	t := newTransition(op, vm, at)
	t.notStarted()
	t.end(Failed, why)
	return t.Next
}
