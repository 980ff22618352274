package drifts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/state"
)

// sizeLimit is how long a node has to tell how large the disks of a guest are. Where it does not, what it told last counts.
const sizeLimit = 3 * time.Second

// Shrunk has the node of a VM tell how large its disks are now, for an order that goes by that. Those that somebody has made larger beside
// Berth have their size in their records when it returns. It gives those that were made smaller.
func (d *Drifts) Shrunk(ctx context.Context, id string) (shrunk []drift.Resized) {
	snapshot := d.Store.Snapshot()
	vm, known := snapshot.VM(id)
	if !known || vm.Holder == "" || vm.Operation != "" || len(vm.Disks) == 0 ||
		snapshot.FeatureLevel() < state.DriftLevel || !d.Heard(vm.Holder) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, sizeLimit)
	defer cancel()
	done, err := d.Agents.Perform(limited, vm.Holder, lead.Task{Sizes: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	live := done.Devices
	if err != nil {
		facts := d.Inventory.Facts(vm.Holder, d.Now())
		if domain := facts.Domain(vm.ID); domain != nil && domain.Epoch == vm.Epoch {
			live = domain.Devices
		}
	}
	resized := drift.ResizedBeside(snapshot, &vm, vm.Holder, live)
	d.note(vm.ID, resized)
	if command := d.resized(&vm, resized); len(command.Resources) > 0 {
		d.Try(ctx, command) // if somebody changes them now, it is looked at again soon
	}
	for _, one := range resized {
		if one.Shrunk() {
			shrunk = append(shrunk, one)
		}
	}
	return shrunk
}

// NotShrunk refuses to copy the disks of a VM one of which somebody has made smaller beside Berth: by its record it would be larger
// than it is, and by its guest smaller than anybody here has wanted.
func (d *Drifts) NotShrunk(ctx context.Context, id string) error {
	shrunk := d.Shrunk(ctx, id)
	if len(shrunk) == 0 {
		return nil
	}
	vm, _ := d.Store.Snapshot().VM(id)
	one := &shrunk[0]
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("the disks of VM %q cannot be copied: %s", vm.Name, one.Text()),
		NextStep: one.Next(&vm),
	}
}

// ShrunkVMs are the VMs, by ID, of which a disk was smaller than its record when somebody looked last: nobody writes that down, so whoever
// tells of it asks for these alone and looks at what their nodes show now.
func (d *Drifts) ShrunkVMs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.shrunk))
}
