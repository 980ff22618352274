package faults

import (
	"berth/agent/watchdog"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

// pause lets a virtual host stand still with all its clocks.
func pause(w *World, what script.Happening, h *host) {
	if !h.On || h.Frozen {
		return
	}
	w.Draw(script.PausedHost)
	h.Dog.Pause()
	w.Later(what.For, h.Thaw)
}

// hasWatchdog tells whether the agent of a host arms its watchdog. Hosts that are paused are virtual.
func (w *World) hasWatchdog(played *script.Script, host int) bool {
	return watchdog.Usable(watchdog.Host{Virtual: played.Pauses(host)}) == nil || w.bug == plant.VirtualWatchdog
}
