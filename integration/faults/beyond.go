package faults

import (
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// beyond is what each fault of the world around Berth does when its time has come. What it does is in a file of its own.
var beyond = map[script.What]func(w *World, what script.Happening, h *host){
	script.Dies:         die,
	script.VirshMigrate: moveByHand,
	script.VirshDestroy: destroyByHand,
	script.VirshStart:   startByHand,
	script.Clone:        clone,
	script.Sick:         hangLong,
	script.Removed:      thawRemoved,
	script.PausedHost:   pause,
	script.Orphan: func(w *World, what script.Happening, _ *host) {
		machine.ForgetFor(w.machines(), uuidOf(vmName(what.VM)), what.For)
	},
	script.Rack:         darkenRack,
	script.RackIsOff:    sayRackIsOff,
	script.SitePower:    cutSitePower,
	script.Certs:        endCertificate,
	script.Killer:       becomeKiller,
	script.EndsUnseen:   endUnseen,
	script.DiskSlows:    slowDown,
	script.ClockErrs:    errClock,
	script.Saved:        saveMemory,
	script.PoolFills:    fillPool,
	script.BackUp:       backUp,
	script.HandOn:       handOn,
	script.Restore:      restore,
	script.Deafens:      deafen,
	script.Attach:       bind,
	script.Backup:       bind,
	script.AcceptSize:   acceptSize,
	script.TogetherDown: func(_ *World, what script.Happening, h *host) { machine.LoseBoth(h.Machine, what) },
}

// troubleBeyond lets such a fault happen, if it is one.
func (w *World) troubleBeyond(what script.Happening, h *host) bool {
	do, known := beyond[what.What]
	if known {
		do(w, what, h)
	}
	return known
}
