package faults

import (
	"time"

	"berth/integration/faults/script"
)

// slowCommit is how long a commit takes then, at most.
const slowCommit = 5 * time.Second

// slowDown lets each commit of the coordinator that leads take seconds for a while. FAULTS.md, W21.
func slowDown(w *World, what script.Happening, _ *host) {
	if m := w.leader; m != nil {
		w.Draw(script.SlowDisk)
		m.slow = slowCommit
		w.Later(what.For, func() { m.slow = 0 })
	}
}
