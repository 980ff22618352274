package faults

import (
	"slices"
	"time"

	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

func becomeKiller(w *World, what script.Happening, _ *host) {
	w.killers.Become(uuidOf(vmName(what.VM)), w.machines())
}

// fell tells whether the leader has heard a node other than one last at a time, or so long before or after that, until now or until it
// was heard again after a while.
func (w *World) fell(but *machine.Machine, at time.Time, within time.Duration) bool {
	m := w.leader
	return m != nil && slices.ContainsFunc(w.hosts, func(h *host) bool {
		return h.Machine != but && m.keeper.heard.Fell(h.ID, w.Now, at, within)
	})
}
