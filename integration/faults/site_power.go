package faults

import (
	"time"

	"berth/integration/faults/script"
)

// sitePower is why guests end then.
const sitePower = "site power"

// Of a site whose power comes back.
const (
	bootsWithin = 2 * time.Minute // the first machine and the last one
	storageLate = 5 * time.Minute // after the last machine has booted, at most
)

// cutSitePower cuts the power of all hosts and coordinators at once. They boot one after the other, and then the storage does.
// FAULTS.md, W13.
func cutSitePower(w *World, what script.Happening, _ *host) {
	w.Draw(script.SitePower)
	defer w.because(sitePower)()
	for _, m := range w.members {
		m.crash()
		w.Later(what.For+w.Between(0, bootsWithin), func() { m.alive = true })
	}
	last := what.For
	for _, h := range w.hosts {
		boots := what.For + w.Between(0, bootsWithin)
		last = max(last, boots)
		h.PowerCut()
		w.Later(boots, h.PowerOn)
	}
	w.StorageFrom = w.Now.Add(last + w.Between(0, storageLate))
	w.rules.ranAtCut()
}
