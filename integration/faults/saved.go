package faults

import (
	"fmt"

	"berth/coordinator/model"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// saveMemory is somebody who has libvirt keep the memory of a guest that Berth has at rest. After a while somebody lets it run on there,
// which must not be a second copy, or gives its memory up.
func saveMemory(w *World, what script.Happening, _ *host) {
	vm := uuidOf(fmt.Sprintf("vm-%d", what.VM))
	if _, busy := w.store.Snapshot().LiveOperationOf(vm); busy {
		return
	}
	for _, h := range w.hosts {
		if w.leader == nil || w.leader.sessions[h.ID] == nil || !machine.SaveByHand(h.Machine, vm) {
			continue
		}
		w.Draw(script.Saved)
		at, boot, runsOn := w.Now, h.BootID(), w.Chance(500)
		w.Later(what.For, func() {
			if !machine.Keeps(h.Machine, vm) {
				return
			}
			// Who starts it elsewhere by hand does not ask Berth.
			if runs := w.rules.truth(vm); runs != nil && h.BootID() == boot && !w.byHand[vm].After(at) {
				w.rules.Broken("saved", vm, "runs on %s, while %s keeps its memory since before", runs.At.ID, h.ID)
			}
			record, known := w.store.Snapshot().VM(vm)
			if wanted := known && record.Desired == model.Running && record.Operation == "" && w.rules.truth(vm) == nil; runsOn && wanted {
				if machine.ResumeByHand(h.Machine, vm) {
					w.byHand[vm] = w.Now
					w.spareKiller(vm)
					return
				}
			}
			machine.DropMemory(h.Machine, vm)
		})
		return
	}
}
