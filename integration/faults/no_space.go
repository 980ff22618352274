package faults

import (
	"context"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/integration/faults/drive"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

// fillPool takes the room of a host's pool, and makes room later.
func fillPool(w *World, what script.Happening, h *host) {
	if !h.On || len(h.Domains) == 0 {
		return
	}
	w.Draw(script.NoSpace)
	machine.FillPool(h.Machine)
	w.Later(what.For, func() {
		machine.EmptyPool(h.Machine)
		for _, d := range h.Sorted() {
			if what.Hard && d.Starves() {
				w.Later(w.Between(0, 20*time.Second), func() { pauseByHand(w, d) })
			}
		}
	})
}

// pauseByHand is the owner of a guest that found no room, who lets it run and pauses it then. Nobody can tell that to an agent that has
// just looked whether it may let the guest run.
func pauseByHand(w *World, d *machine.Domain) {
	if m := w.leader; m == nil || !m.keeper.asking[unpauses(d.At.ID, d.UUID)] {
		machine.PauseStarved(d, w.Between(10*time.Second, 2*time.Minute))
	}
}

func unpauses(node, vm string) string { return "unpauses " + node + " " + vm }

// unpause has a guest run on for which there is room again.
func (k *keeper) unpause(vm model.VM) {
	k.perform("unpauses", vm.Holder, vm.ID, func(l *life) error {
		if k.world.bug == plant.PausedRuns {
			return l.host.Libvirt(l).Resume(context.Background(), vm.ID, vm.Epoch)
		}
		return drive.Unpause(l.host.Libvirt(l), &vm)
	}, func() {})
}

// starving tells whether a guest stands still where its record has it, though there is room.
func starving(w *World) bool {
	return w.fencing && slices.ContainsFunc(w.store.Snapshot().VMs(), func(vm model.VM) bool {
		h := w.host(vm.Holder)
		return h != nil && h.Domains[vm.ID] != nil && h.Domains[vm.ID].Starves()
	})
}
