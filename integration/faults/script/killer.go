package script

import "math/rand/v2"

// drawKiller makes one of the VMs that are to be highly available take its hosts down.
func (s *Script) drawKiller(r *rand.Rand) {
	if s.HA == 0 || r.IntN(6) > 0 {
		return
	}
	s.Happenings = append(s.Happenings, Happening{At: s.sometime(r) / 2, What: Killer, VM: r.IntN(s.HA)})
}
