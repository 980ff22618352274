package faults

import (
	"time"

	"berth/coordinator/model"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// untilKept is how soon a leader is told that a node keeps memory, if at all, and how soon it has that in the record then. Of what no
// leader was told, or one that was lost before that, nothing is promised.
const untilKept = 10 * time.Second

// saveMemory is somebody who has libvirt keep the memory of a guest that Berth has at rest. After a while somebody lets it run on there,
// which must not be a second copy, or gives its memory up.
func saveMemory(w *World, what script.Happening, _ *host) {
	vm := uuidOf(vmName(what.VM))
	if _, busy := w.store.Snapshot().LiveOperationOf(vm); busy {
		return
	}
	for _, h := range w.hosts {
		if w.leader == nil || w.leader.sessions[h.ID] == nil || !machine.SaveByHand(h.Machine, vm) {
			continue
		}
		w.Draw(script.Saved)
		at, boot, runsOn, term, told := w.Now, h.BootID(), w.Chance(500), w.term, false
		w.Later(untilKept, func() {
			if d := w.showed(h, vm); d != nil && d.Saved {
				w.Later(untilKept, func() { told = w.term == term })
			}
		})
		w.Later(what.For, func() {
			if !machine.Keeps(h.Machine, vm) {
				return
			}
			// Who starts it elsewhere by hand does not ask Berth.
			if runs := w.rules.truth(vm); runs != nil && told && h.BootID() == boot && !w.byHand.At(vm).After(at) {
				w.rules.Broken("saved", vm, "runs on %s, while %s keeps its memory since before", runs.At.ID, h.ID)
			}
			record, known := w.store.Snapshot().VM(vm)
			if wanted := known && record.Desired == model.Running && record.Operation == "" && w.rules.truth(vm) == nil; runsOn && wanted {
				if machine.ResumeByHand(h.Machine, vm) {
					w.byHand.Note(vm, "", w.Now)
					w.killers.Spare(vm)
					return
				}
			}
			machine.DropMemory(h.Machine, vm)
		})
		return
	}
}
