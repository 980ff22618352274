package faults

import (
	"fmt"
	"time"

	"berth/integration/faults/script"
)

// orphan lets libvirtd of the host that runs the VM restart and forget it. Somebody ends the guest's process after a while, as
// the alarm asks for.
func orphan(w *World, what script.Happening, _ *host) {
	uuid := uuidOf(fmt.Sprintf("vm-%d", what.VM))
	for _, h := range w.hosts {
		if !h.Forget(uuid) {
			continue
		}
		w.Draw(script.Orphan)
		w.Later(w.Between(100*time.Millisecond, 5*time.Second), h.StartDaemon)
		w.Later(what.For, func() { h.EndOrphan(uuid) })
		return
	}
}
