package faults

import (
	"fmt"
	"time"

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
				w.byHand[vm] = w.Now
				w.Draw(script.Foreign)
			}
		}
	}
}

// unseenFor is how long it may take a leader to write down that somebody has moved a guest: until its next look, and the one after.
const unseenFor = 15 * time.Second

// endUnseen ends the guests that somebody has moved just before the leader was gone who could have seen that. Nothing is promised of
// them: the machine that they left may be gone as well before the next leader hears it.
func (w *World) endUnseen() {
	for _, vm := range sortedKeys(w.byHand) {
		if w.Now.Sub(w.byHand[vm]) >= unseenFor {
			continue
		}
		for _, h := range w.hosts {
			h.Crash(vm)
		}
	}
}
