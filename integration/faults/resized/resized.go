// Package resized compares how large disks of the simulator are, after people have resized them beside Berth, with what their records say,
// and with what is made for them where their VMs go.
package resized

import (
	"maps"
	"slices"
	"time"

	"berth/agent/telemetry"
	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
	"berth/shared/units"
)

// Every is the pause between two looks at the sizes that nodes tell.
const Every = 2 * time.Second

// Disks are those of a site: each of some VMs has one, on its node.
type Disks struct {
	Site     *machine.Site
	Machines []*machine.Machine
	Has      map[string]bool // VMs with a disk, by UUID
	Happens  bool            // somebody resizes them
	Blind    bool            // planted: a move does not ask how large a disk is
}

func idOf(vm string) string { return vm + "-root" }

// Declare adds to a command the records of the disks as they are made. Their pool is one that nobody has declared.
func (d *Disks) Declare(command *state.Command) {
	for _, vm := range slices.Sorted(maps.Keys(d.Has)) {
		made := machine.VolumesOf(&model.VM{ID: vm})[0]
		command.Resources = append(command.Resources, model.Resource{
			Kind: model.KindDisk, ID: idOf(vm), Name: idOf(vm),
			Volume: &model.Volume{Pool: model.BuiltIn + made.Pool, Name: made.Name, Format: made.Format, Capacity: made.Capacity},
		})
		command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: idOf(vm)})
	}
}

// Change is somebody who resizes the disk of a VM, wherever it runs, or where it ran last if it is off.
func (d *Disks) Change(snapshot *state.Snapshot, what script.Happening) {
	vm, known := snapshot.VM(script.UUIDOf(what.VM))
	if !known {
		return
	}
	for _, h := range d.Machines {
		live := what.What == script.VirshBlockresize
		if !live && (h.ID != vm.Home || vm.Holder != "" || vm.Operation != "") {
			continue // of copies that a migration has left nobody knows
		}
		if machine.Resize(h, vm.ID, machine.DiskName(vm.ID), live, units.Bytes(what.Other)*units.GiB/4) {
			d.Site.Draw(script.Resized)
		}
	}
}

// Volumes are the disks of a VM as orders have them, as large as their records say; nil: it has none.
func (d *Disks) Volumes(snapshot *state.Snapshot, vm *model.VM) []model.VolumeOrder {
	if !d.Has[vm.ID] {
		return nil
	}
	volumes := machine.VolumesOf(vm)
	if disk, known := snapshot.Resource(idOf(vm.ID)); known {
		volumes[0].Capacity = disk.Volume.Capacity
	}
	return volumes
}

// beside are the disks of a VM that somebody has resized, by what a node shows of it.
func (d *Disks) beside(snapshot *state.Snapshot, vm model.VM, domain *model.Domain) []drift.Resized {
	if !d.Has[vm.ID] || vm.Holder == "" || domain == nil || domain.Epoch != vm.Epoch {
		return nil
	}
	vm.Disks = []string{idOf(vm.ID)}
	return drift.ResizedBeside(snapshot, &vm, vm.Holder, domain.Devices)
}

// Along makes a migration one that copies the disks of its VM, as large as its node says now that they are, if it can be asked. It is false
// if they must not be copied, because somebody has made one smaller, or has yet to decide about copies.
func (d *Disks) Along(
	snapshot *state.Snapshot, op *operation.Operation, vm *model.VM, facts func(node string) model.NodeFacts, asked bool,
) bool {
	if !d.Has[vm.ID] {
		return true
	}
	op.CopyStorage, op.Volumes, op.Replaced = true, d.Volumes(snapshot, vm), d.Volumes(snapshot, vm)
	if !d.Happens {
		return vm.Copies == nil
	}
	shows := facts(vm.Holder)
	domain := shows.Domain(vm.ID)
	if domain != nil && asked {
		now := *domain
		domain = &now
		domain.Devices = d.told(vm, domain.Devices)
	}
	for _, one := range d.beside(snapshot, *vm, domain) {
		if d.Blind {
			break
		}
		if one.Shrunk() {
			return false
		}
		op.Volumes[0].Capacity = one.Is
	}
	if is := d.size(vm); asked && is > 0 && domain != nil && op.Volumes[0].Capacity != is {
		d.Site.Broken("resized", vm.ID, "moves with a disk of %v to a volume of %v, and its node would have told", is, op.Volumes[0].Capacity)
	}
	return vm.Copies == nil
}

// told are devices with the sizes that their node tells when it is asked.
func (d *Disks) told(vm *model.VM, devices []model.Device) []model.Device {
	told := slices.Clone(devices)
	for i := range told {
		if told[i].Source.Volume == machine.DiskName(vm.ID) {
			told[i].Capacity = d.size(vm)
		}
	}
	return told
}

// size is how large the disk of a VM is where that runs.
func (d *Disks) size(vm *model.VM) units.Bytes {
	for _, h := range d.Machines {
		if h.ID == vm.Holder && h.Domains[vm.ID] != nil {
			return machine.DiskSize(h, machine.DiskName(vm.ID))
		}
	}
	return 0
}

// Grown are commands that take over that disks were made larger, as their nodes show them, as control does.
func (d *Disks) Grown(
	snapshot *state.Snapshot, facts func(node string) model.NodeFacts, key func() string, at time.Time,
) (commands []state.Command) {
	if lead.Quarantined(snapshot) != nil {
		return nil
	}
	for _, vm := range snapshot.VMs() {
		shows := facts(vm.Holder)
		for _, one := range d.beside(snapshot, vm, shows.Domain(vm.ID)) {
			if one.Shrunk() || vm.Operation != "" {
				continue
			}
			commands = append(commands, state.Command{
				Key: key(), Kind: "follow vm", Caller: "berth", At: at, Resources: []model.Resource{one.Taken()},
				Expect: []state.Expectation{
					{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}, {Table: state.Resources, ID: one.Disk.ID, Revision: one.Disk.Revision},
				},
			})
		}
	}
	return commands
}

// Spare notes at each step of a migration on which node a copy of its VM's disk is that it has made and that nobody needs, by disk. Where
// a person keeps neither guest the disks of both nodes are needed: nobody has seen them.
func Spare(spare map[string]string, op *operation.Operation, vm *model.VM) {
	switch {
	case op.Phase == operation.Copying, op.Resolution == operation.KeepNone:
		delete(spare, machine.DiskName(op.VM))
	case op.Phase == operation.Discarding && op.Leftover == op.Target && vm.Holder == op.Source && !op.Revert:
		spare[machine.DiskName(op.VM)] = op.Target
	}
}

// Judge compares the disk of a VM that runs with its record, when everything has come to rest: it is as large, or is named as smaller.
func (d *Disks) Judge(snapshot *state.Snapshot, vm *model.VM, at *machine.Domain) {
	is := d.size(vm)
	if disk, known := snapshot.Resource(idOf(vm.ID)); !known || at == nil || is == 0 || at.Epoch != vm.Epoch || disk.Volume.Capacity == is {
		return
	}
	domain := model.Domain{Epoch: vm.Epoch, Devices: inventory.DevicesFrom(telemetry.Devices(at.Devices, at.DiskSizes, false))}
	for _, one := range d.beside(snapshot, *vm, &domain) {
		if one.Is == is && one.Shrunk() {
			return
		}
	}
	d.Site.Broken("resized", vm.ID, "its disk has %v, and nobody can tell", is)
}
