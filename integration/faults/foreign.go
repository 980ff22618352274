package faults

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// moveByHand is somebody who migrates a guest with virsh, where no operation works on it. It is taken for granted that the machine which
// it leaves is heard: nobody moves guests off machines that Berth does not hear, to others that it does not hear, and switches
// the first ones off.
func moveByHand(w *World, what script.Happening, to *host) {
	vm := uuidOf(fmt.Sprintf("vm-%d", what.VM))
	_, busy := w.store.Snapshot().LiveOperationOf(vm)
	for _, h := range w.hosts {
		if w.leader != nil && w.leader.sessions[h.ID] != nil && !busy && h.Domains[vm] != nil && !h.Frozen {
			if h.MigrateByHand(vm, to.Machine) {
				w.byHand.Note(vm, h.ID, w.Now)
				w.Draw(script.Foreign)
			}
		}
	}
}

// destroyByHand is somebody who ends a guest with virsh.
func destroyByHand(w *World, what script.Happening, _ *host) {
	vm := uuidOf(fmt.Sprintf("vm-%d", what.VM))
	for _, h := range w.hosts {
		if h.Domains[vm] != nil && h.Up && !h.Hung && !h.Frozen {
			h.Crash(vm)
			w.Draw(script.Foreign)
		}
	}
}

// startByHand is somebody who starts a guest with virsh that runs nowhere, on a machine that had it once. What Berth is to restart by
// itself nobody starts by hand at the same time.
func startByHand(w *World, what script.Happening, h *host) {
	vm := uuidOf(fmt.Sprintf("vm-%d", what.VM))
	record, known := w.store.Snapshot().VM(vm)
	berths := record.Operation != "" || record.HA && record.Desired == model.Running
	if !known || berths || w.leader == nil || w.leader.sessions[h.ID] == nil || w.leader.isAskedFor(vm) ||
		w.rules.truth(vm) != nil {
		return
	}
	if h.StartByHand(vm) {
		w.byHand.Note(vm, "", w.Now)
		w.killers.Spare(vm)
		w.Draw(script.Foreign)
	}
}

// isAskedFor tells whether somebody has asked for an operation of a VM that is not in the log yet, which takes seconds on a slow disk.
// Whoever asked for a start does not start the guest by hand meanwhile, on another machine, nor does anybody whom they tell: no
// coordinator and no agent could know of both in time. That the second copy is suspended is fault 37's.
func (m *member) isAskedFor(vm string) bool {
	return slices.ContainsFunc(m.pending, func(p *proposal) bool {
		return slices.ContainsFunc(p.command.Operations, func(op operation.Operation) bool { return op.VM == vm })
	})
}

// isToldOf tells whether somebody has started a guest by hand and no coordinator can know that yet. People speak with each other.
func (m *member) isToldOf(vm string) bool {
	d := m.world.rules.truth(vm)
	return d != nil && d.Is(machine.ByHand) && !slices.Contains(m.keeper.facts.Shown(vm), d.At.ID)
}

// Falls ends the guests that somebody has just moved off a machine which falls.
func (w *World) Falls(from *machine.Machine) {
	w.byHand.Falls(from, w.machines(), func() (at time.Time) {
		if w.leader != nil && w.fencing {
			at = w.leader.keeper.factsOf(from.ID).InventoryAt
		}
		return at
	})
}
