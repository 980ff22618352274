package faults

import (
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/backup"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

// backUp makes a backup of the coordinators' state.
func backUp(w *World, _ script.Happening, _ *host) { w.shelf.Take(w.store.Snapshot()) }

// restore puts the backup back, as soon as there is a leader who does that. The leadership begins anew.
func restore(w *World, what script.Happening, _ *host) {
	m := w.leader
	switch {
	case !w.shelf.Has() || w.healed:
		return
	case m == nil || m.frozen || !m.alive:
		w.Later(time.Second, func() { restore(w, what, nil) })
		return
	}
	w.Draw(script.Restored)
	m.stepDown()
	w.store, w.log = w.shelf.Restore(w.store.Snapshot(), w.Now), nil
	clear(w.rules.ran)
	for vm := range w.shelf.Off { // somebody may have moved it just before it was stopped, and then it runs
		if w.rules.truth(vm) != nil {
			delete(w.shelf.Off, vm)
		}
	}
	w.elect(time.Second, 3*time.Second)
}

// quarantined tells whether no VM is to be touched, because nodes have not told yet what became of a backup's VMs.
func (w *World) quarantined() bool { return lead.Quarantined(w.store.Snapshot()) != nil }

// quarantineWaits tells whether it waits for a dead host of which nobody says that it is off.
func (w *World) quarantineWaits() bool {
	return slices.ContainsFunc(w.hosts, func(h *host) bool { return h.forsaken })
}

// reconcile lifts the quarantine once every node has told what it runs, as control does.
func (k *keeper) reconcile() {
	snapshot := k.view()
	if lead.Quarantined(snapshot) == nil {
		return
	}
	if command, told := backup.Lift(k.moment(snapshot)); told {
		command.Key, command.At = k.world.newKey(), k.now()
		k.try(command, func(bool) {})
	}
}

// resumeTorn is a person who looks after the guests that were being moved when the backup was restored.
func resumeTorn(w *World) {
	if !w.quarantined() {
		w.shelf.LookAfter(w.machines(), w.disked, w.store.Snapshot())
	}
}

// handOn is somebody who takes the disk of one VM, and gives it to another one. Both have to be stopped for that.
func handOn(w *World, what script.Happening, h *host) {
	snapshot := w.store.Snapshot()
	from, known := snapshot.VMByName(vmName(what.VM))
	to, also := snapshot.VMByName(vmName(what.Other))
	m := w.leader
	switch stopped := func(vm *model.VM) bool { return vm.Holder == "" && vm.Operation == "" && w.rules.truth(vm.ID) == nil }; {
	case w.healed || w.shelf.Base != nil || w.disked[uuidOf(vmName(what.VM))] || len(from.Spec.Disks) != 1 && known:
		return
	case !known || !also || m == nil || m.frozen || !stopped(&from) || !stopped(&to):
		for _, name := range []string{vmName(what.VM), vmName(what.Other)} {
			w.wish(script.Stop, h, name, true)
		}
		w.Later(3*time.Second, func() { handOn(w, what, h) })
		return
	}
	command := backup.HandOn(from, to)
	command.Key, command.At = w.newKey(), m.now()
	m.propose(command, func(state.Result, error) { w.wish(script.Start, h, to.Name, false) })
}

// disksFree tells whether no guest of another VM has a disk of this one.
func (k *keeper) disksFree(vm *model.VM, node string) bool {
	_, used := k.fencer.Survey(k.moment(k.view())).UsedDisk(vm, node)
	return !used || k.world.bug == plant.DiskUnasked
}

// checkDisks asks whether no other guest writes to a disk of one that has got to run, as far as its node has shown that to the leader.
func (r *rules) checkDisks(d *machine.Domain) {
	for _, h := range r.hosts {
		heard := r.leader != nil && r.leader.sessions[h.ID] != nil && r.Now.Sub(r.leader.sessions[h.ID].began) > time.Minute
		for _, other := range h.Sorted() {
			if heard && d.Shares(other) && d.Reason == "booted" && !d.Is(machine.ByHand) && other.State == hypervisor.Running && !other.Forgotten {
				r.Broken("disk", d.UUID, "runs on %s with a disk that %s on %s writes to", d.At.ID, other.UUID, h.ID)
			}
		}
	}
}

// checkRestored asks of a start whether a VM that people have stopped since the backup is started by their word only.
func (r *rules) checkRestored(op *operation.Operation) {
	if op.Kind != operation.Start {
		return
	}
	if op.Restart && r.shelf.Off[op.VM] {
		r.Broken("restored", op.VM, "is restarted by itself, and people had stopped it since the backup")
	}
	delete(r.shelf.Off, op.VM)
}
