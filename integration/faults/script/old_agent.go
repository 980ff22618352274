package script

import (
	"math/rand/v2"
	"slices"

	"berth/coordinator/model"
)

// drawOldAgent gives some hosts an agent of the release before, in some of the sites: it does not know the fields that keep guests safe,
// and does what older releases did. Where a host is paused, it is that
// one, and its watchdog stands still with it. It is not drawn with a
// host that never returns: its watchdog would be asked for a proof that it cannot give.
func drawOldAgent(s *Script, r *rand.Rand) {
	if r.IntN(4) > 0 || s.Draws(Dies) {
		return
	}
	s.Old = append(s.Old, r.IntN(min(s.Hosts, 8)))
	for _, one := range s.Happenings {
		if one.What == PausedHost {
			s.Old = append(s.Old, one.Host)
			s.Fences[one.Host%s.Hosts] = model.FenceWatchdog
		}
	}
}

// IsOld tells whether the agent of a host is of the release before.
func (s *Script) IsOld(host int) bool {
	return slices.ContainsFunc(s.Old, func(old int) bool { return old%s.Hosts == host })
}
