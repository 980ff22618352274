package faults

import (
	"berth/coordinator/control/fencing"
	"berth/integration/faults/script"
)

// darkenRack cuts the power of all hosts of a rack at once. FAULTS.md, W12.
func darkenRack(w *World, what script.Happening, _ *host) {
	w.Draw(script.Rack)
	defer w.because("rack")()
	for _, h := range w.hosts[:w.rack] {
		h.PowerCut()
		w.Later(what.For, h.PowerOn)
	}
}

// sayRackIsOff is the one command that brings the VMs of a dark rack back: berth node fence --label rack-1 --confirmed-off.
func sayRackIsOff(w *World, _ script.Happening, _ *host) {
	for _, h := range w.hosts[:w.rack] {
		if h.On {
			return // it would be refused
		}
	}
	w.rules.down.Again("rack", "rack, from the word", w.Now)
	for _, m := range w.members {
		if m.leads() && !m.frozen {
			for _, h := range w.hosts[:w.rack] {
				m.keeper.fenceByHand(h, fencing.FenceNode{ConfirmedOff: true})
			}
			return
		}
	}
}
