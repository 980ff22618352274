package script

import "math/rand/v2"

// LocalFile is that VMs have a file on their nodes' own file systems. Every node has another one of the same path.
const LocalFile = "local-file"

// drawLocal gives the last VMs of every fourth of these sites such a file. Those with a disk in a pool of their node are the first ones.
func drawLocal(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(4) > 0 || s.Draws(Restore) || len(s.Liars) > 0 || s.Disks >= s.VMs {
		return
	}
	s.Local = 1 + r.IntN(s.VMs-s.Disks)
}
