package operation

import (
	"fmt"
	"time"

	"berth/coordinator/cluster"
)

// Target is what a decision found for a start.
type Target struct {
	Node     string // ID
	Name     string
	Decision string        // ID
	Behind   int           // how many other starts come first there; 0: it is its turn
	Sticky   []cluster.Key // what the VM takes along from there

	// Resident are the customer keys that the decision was made with, and Owner whose they are. From now on others meet
	// them, because the reservation counts like the VM.
	Resident []cluster.ResidentKey
	Owner    cluster.Owner

	// What the operation has of the same names, of this node: another one may be in another cluster and have other pools.
	Spec           *cluster.VMSpec
	MakesHome      bool
	Volumes        []cluster.VolumeOrder
	CPU, PassedCPU string
}

// Place gives a start its next node. The VM's LastEpoch must already be the new epoch's predecessor.
func Place(op Operation, vm cluster.VM, target Target, at time.Time) Next {
	vm.LastEpoch++
	op.Target, op.TargetName, op.Decision, op.Sticky = target.Node, target.Name, target.Decision, target.Sticky
	op.Spec, op.MakesHome, op.Volumes, op.CPU, op.PassedCPU = target.Spec, target.MakesHome, target.Volumes, target.CPU, target.PassedCPU
	op.Epoch = vm.LastEpoch
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

// Dispatch lets a queued start begin.
func Dispatch(op Operation, vm cluster.VM, at time.Time) Next {
	t := newTransition(op, vm, at)
	t.Operation.Message = ""
	t.enter(Dispatched)
	return t.Next
}

// Abandon ends a start of which no order is out: one that is queued, or for which no node is left.
func Abandon(op Operation, vm cluster.VM, why string, at time.Time) Next {
	t := newTransition(op, vm, at)
	t.notStarted()
	t.end(Failed, why)
	return t.Next
}
