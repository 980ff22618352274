package faults

import (
	"slices"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/decided"
	"berth/integration/faults/drive"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

func init() {
	for _, what := range script.Resizes {
		beyond[what] = func(w *World, what script.Happening, _ *host) { w.resized.Change(w.store.Snapshot(), what) }
	}
	beyond[script.SourceDies] = func(w *World, what script.Happening, _ *host) { w.sourceDies = &what }
}

// takeAlong makes a migration one that copies the VM's disks, by what its node says of them. It is false if they must not be copied.
func (m *member) takeAlong(op *operation.Operation, vm *model.VM) bool {
	w, h, s := m.world, m.world.host(vm.Holder), m.sessions[vm.Holder]
	asked := h != nil && h.Up && !h.Hung && !h.Frozen && s != nil && s.life == h.life && !w.IsCut(h.ID, m.id)
	return w.resized.Along(m.view(), op, vm, m.keeper.factsOf, asked)
}

// standsWithDisks lets the source die, if that is to happen.
func (w *World) standsWithDisks(d *machine.Domain) {
	what, h := w.sourceDies, w.host(d.At.ID)
	if what == nil {
		return
	}
	w.sourceDies = nil
	w.Later(w.Between(0, 400*time.Millisecond), func() {
		w.Draw(script.Volumes)
		h.PowerCut()
		if what.Hard {
			h.LoseDisks()
		}
		w.Later(what.For, h.PowerOn)
	})
}

// Keeps tells whether a disk is to be kept: its VM has been started.
func (r *rules) Keeps(disk string) bool {
	for _, vm := range r.store.Snapshot().VMs() {
		if machine.DiskName(vm.ID) == disk {
			return vm.Home != ""
		}
	}
	return false
}

// Spare tells whether the copy of a disk on a machine was made by a migration that ended with its guest on its source. If that loses its
// disks afterwards, the copy would have been one more, and nobody promises one.
func (r *rules) Spare(disk string, at *machine.Machine) bool { return r.spare[disk] == at.ID }

// decide is a person who looks after what is left to people. It tells whether there was something to be done.
func (w *World) decide() bool {
	m := w.leader
	someone := decided.Person{
		Records: m.view(), At: m.now(), Key: w.newKey,
		Propose: func(command state.Command, drive string) {
			m.propose(command, func(result state.Result, err error) {
				if drive != "" && err == nil && result.Refusal == nil {
					m.drive(drive)
				}
			})
		},
		HasDisk: func(node, vm string) bool { return w.host(node).HasVolume(machine.DiskName(vm)) },
	}
	if w.fencing && !w.quarantined() {
		someone.Observed = m.keeper.fencer.Survey(m.keeper.moment(m.view())).Observed
		someone.IsWhole = func(node, vm string) bool { d := w.host(node).Domains[vm]; return d != nil && d.IsWhole() }
		someone.End = func(node, vm string) { w.host(node).Crash(vm) }
	}
	return someone.Decide()
}

// removeCopies has copies removed that are of no use any more, as control does.
func (k *keeper) removeCopies() {
	moment := k.moment(k.view())
	for _, vm := range moment.VMs() {
		if !evidence.Superseded(moment, &vm) && (k.world.bug != plant.CopiesUnread || vm.Copies == nil || vm.Operation != "") {
			continue
		}
		copies := *vm.Copies
		k.perform("removes copies", copies.Node, vm.ID, func(l *life) error { return drive.RemoveVolumes(l.storage, copies.Volumes) }, func() {
			if now, known := k.view().VM(vm.ID); known {
				after := now
				after.Copies = nil
				k.keepBeside(now, after)
			}
		})
	}
}

// judgeDisks asks whether each VM that has been started has its disk, with all that was written to it. Where that was
// lost with its machine nothing can be asked: what is left elsewhere is older.
func (r *rules) judgeDisks(snapshot *state.Snapshot) {
	for _, vm := range snapshot.VMs() {
		if vm.Home == "" || !r.disked[vm.ID] || vm.Operation != "" || r.shelf.Torn[vm.ID] {
			continue
		}
		name := machine.DiskName(vm.ID)
		kept := r.host(vm.Home).HasVolume(name) || vm.Copies != nil && r.host(vm.Copies.Node).HasVolume(name)
		lost := !slices.ContainsFunc(r.hosts, func(h *host) bool { return h.HasAll(name) })
		if !kept && !lost {
			r.Broken("disk", vm.ID, "the record says that its disk is on %s, and what was written last is elsewhere", vm.Home)
		}
	}
}

// diskless tells whether a VM has no disk to start with: the machine of its record has lost it, or another guest writes to it.
func (r *rules) diskless(vm *model.VM) bool {
	used := func(disk model.Disk) bool { return r.IsUsedBeside(vm.ID, disk.Path) }
	return slices.ContainsFunc(vm.Spec.Disks, used) || vm.Home != "" && !r.host(vm.Home).HasVolume(machine.DiskName(vm.ID))
}
