package script

import (
	"math/rand/v2"
	"slices"
	"time"
)

// orphan lets libvirt forget guests in some of the scripts. For is until somebody ends the process.
func (s *Script) orphan(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	for range 1 + r.IntN(2) {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: Orphan, VM: r.IntN(s.VMs), For: 10*time.Second + time.Duration(r.Int64N(int64(3*time.Minute))),
		})
	}
}

// clone lets a copy of a host's disk boot in another machine, in some of the sites whose nodes report. For is until somebody switches
// the copy off and says which machine the node is. Hard: it is put to sleep before, and its disk is that of another boot. It is not
// drawn with a host that never returns: nobody can say then which machine that node is, and what waits for it waits to the end.
func (s *Script) clone(r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(4) > 0 || s.Draws(Dies) {
		return
	}
	s.Happenings = append(s.Happenings, Happening{
		At: s.sometime(r), What: Clone, Host: r.IntN(min(s.Hosts, 8)), For: 20*time.Second + time.Duration(r.Int64N(int64(2*time.Minute))),
	})
}

// pause lets virtual hosts be paused, in some of the sites whose nodes report. For is until they go on.
func (s *Script) pause(r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(2) > 0 {
		return
	}
	for range 1 + r.IntN(2) {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: PausedHost, Host: r.IntN(min(s.Hosts, 8)), For: 2*time.Minute + time.Duration(r.Int64N(int64(4*time.Minute))),
		})
	}
}

// Pauses tells whether a host is virtual, and paused some day.
func (s *Script) Pauses(host int) bool {
	return slices.ContainsFunc(s.Happenings, func(h Happening) bool { return h.What == PausedHost && h.Host%s.Hosts == host })
}
