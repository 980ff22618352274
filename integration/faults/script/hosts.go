package script

import (
	"math/rand/v2"
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
