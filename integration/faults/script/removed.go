package script

import "math/rand/v2"

// drawRemoved lets the machine of a node thaw that was removed before, with a running copy of a VM, in some of the sites whose nodes
// report.
func drawRemoved(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(4) > 0 {
		return
	}
	s.Happenings = append(s.Happenings, Happening{At: s.sometime(r), What: Removed, VM: r.IntN(s.VMs)})
}
