package drifted

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/drift"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/integration/faults/drive"
	berthv1 "berth/shared/gen/berth/v1"
)

// Every is the pause between two looks at guests whose devices have changed, as control's.
const Every = 500 * time.Millisecond

// Follower is a leader that writes down what people have changed of guests, as control does. It begins with none of them.
type Follower struct {
	// Look is what the leader knows now, Ask has a node do something about a VM, and then is called if it has; Store stores a record.
	Look  func() *drift.Look
	Ask   func(node, vm string, task func(hypervisor.Hypervisor) error, then func())
	Store func(before, after model.VM, done func(stored bool))

	due map[string]model.ToldDevices // guests whose devices have changed, by VM
}

// Turn looks at the guests of which devices were told since the last turn, and at those that were to be looked at again.
func (f *Follower) Turn(changed []model.ToldDevices) {
	if f.due == nil {
		f.due = map[string]model.ToldDevices{}
	}
	for _, told := range changed {
		f.due[told.VM] = told
	}
	for _, vm := range slices.Sorted(maps.Keys(f.due)) {
		told := f.due[vm]
		switch found := f.Look().Settle(told); {
		case found.Again:
		case found.Ask != "":
			f.ask(found, told)
		default:
			f.settle(found, told)
		}
	}
}

// ask has a node tell the elements of a guest's devices, and writes down what follows.
func (f *Follower) ask(found drift.Found, told model.ToldDevices) {
	var live []model.Device
	vm := found.Before
	f.Ask(found.Ask, vm.ID, func(libvirt hypervisor.Hypervisor) error {
		order := &berthv1.Task{Action: &berthv1.Task_Devices{Devices: &berthv1.DevicesTask{VmId: vm.ID, Epoch: vm.Epoch}}}
		result, err := drive.Task(libvirt, order)
		live = inventory.DevicesFrom(result.GetDevices())
		return err
	}, func() { f.settle(f.Look().Answered(found, live), told) })
}

// settle stores what follows from a look.
func (f *Follower) settle(found drift.Found, told model.ToldDevices) {
	done := func(stored bool) {
		if stored && !found.Unsure && reflect.DeepEqual(f.due[told.VM], told) {
			delete(f.due, told.VM)
		}
	}
	if reflect.DeepEqual(found.Before, found.VM) {
		done(true)
		return
	}
	f.Store(found.Before, found.VM, done)
}
