package faults

import (
	"time"

	"berth/integration/faults/script"
)

// die is the end of a host.
func die(w *World, _ script.Happening, h *host) {
	if h.Lost {
		return
	}
	w.Draw(script.NeverBack)
	h.Lose()
}

// wordAfter is how long after the faults somebody says that a machine which never comes back is off.
const wordAfter = 2 * time.Minute

// sayOff is somebody who says that a machine is off, until that counts as proven.
func (w *World) sayOff(h *host) {
	if record, _ := w.store.Snapshot().Node(h.ID); record.Fenced() {
		return
	}
	w.wish(script.Word, h, "", false)
	w.After(10*time.Second, func() { w.sayOff(h) })
}
