package faults

import (
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

func becomeKiller(w *World, what script.Happening, _ *host) {
	w.killers.Become(uuidOf(vmName(what.VM)), w.machines())
}

// othersAreAway tells whether a host other than one is off, stands still or has no agent.
func (w *World) othersAreAway(from *machine.Machine) bool {
	for _, h := range w.hosts {
		if h.Machine != from && (!h.On || h.Frozen || h.life == nil || h.life.dead || h.life.session == nil) {
			return true
		}
	}
	return false
}
