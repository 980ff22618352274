package script

import (
	"math/rand/v2"
	"time"
)

// Volumes are drawn as the death of a migration's source: it loses its power when the guest stands still to be handed over with its
// disks, and now and then its own disks as well.
const Volumes = "volumes"

// SourceDies is that, at the next migration with disks.
const SourceDies What = "source of a move with disks dies" // Hard: its disks are lost

// drawVolumes gives some of the VMs of every third site disks on their nodes, and lets sources die.
func drawVolumes(s *Script, r *rand.Rand) {
	if r.IntN(3) != 0 || s.Hosts > 12 {
		return
	}
	s.Disks = 1 + r.IntN(s.VMs)
	for range r.IntN(4) {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: SourceDies, For: time.Duration(20+r.IntN(180)) * time.Second, Hard: r.IntN(2) == 0,
		})
	}
}
