// Package followed does in the simulator what follows from what a leader has found of VMs that nothing is done to, as control does.
package followed

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// Deeds are what a leader can do about a VM: have its holder refuse it and do something then, give it a new epoch on the node that runs it,
// and store another record of it.
type Deeds struct {
	Now      time.Time
	Refuse   func(vm model.VM, then func())
	TakeOver func(vm model.VM, node string)
	Keep     func(before, after model.VM)
}

// Do does what follows from a find.
func (d Deeds) Do(found *evidence.Found) {
	vm := found.VM
	lost := found.Missing && vm.Whereabouts.Missing.IsZero()
	switch found.Verdict {
	case evidence.StoppedHere:
		condition := found.Condition
		d.Refuse(vm, func() {
			after := vm
			after.Holder, after.Condition, after.Whereabouts = "", condition, model.Whereabouts{}
			d.Keep(vm, after)
		})
	case evidence.MovedAway:
		node := found.Node
		if found.HolderOff {
			d.TakeOver(vm, node)
		} else {
			d.Refuse(vm, func() { d.TakeOver(vm, node) })
		}
	case evidence.CameBack:
		d.TakeOver(vm, found.Node)
	case evidence.Undecided:
		if lost {
			d.keep(vm, found, lost, false)
		}
	case evidence.OutOfBand, evidence.HasRoom:
		// What is said already, and not by this watch, stays: it may be what keeps the VM from being restarted.
		news := !vm.Condition.Same(found.Condition) && (vm.Condition.Is(model.NoCondition) || evidence.IsOutOfBand(vm.Condition))
		if news || lost {
			d.keep(vm, found, lost, news)
		}
	}
}

// keep stores what was found: that nobody knows where the VM is, and what is told of it.
func (d Deeds) keep(vm model.VM, found *evidence.Found, lost, news bool) {
	after := vm
	if news {
		after.Condition = found.Condition
	}
	if lost {
		after.Whereabouts.Missing = d.Now
	}
	d.Keep(vm, after)
}
