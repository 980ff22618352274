package script

import (
	"math/rand/v2"
	"time"
)

// drawSaved lets people have libvirt keep the memory of guests, in some of the sites whose nodes report. For is until somebody lets the
// guest run on, or gives its memory up.
func drawSaved(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(3) > 0 {
		return
	}
	for range 1 + r.IntN(3) {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: Saved, VM: r.IntN(s.VMs), For: time.Second + time.Duration(r.Int64N(int64(5*time.Minute))),
		})
	}
}
