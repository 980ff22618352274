package script

import (
	"math/rand/v2"
	"time"
)

// drawRack puts two fifths of the hosts into one rack, which goes dark for long, and has somebody say then that its machines are off.
func drawRack(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || s.Hosts < 5 || r.IntN(4) > 0 {
		return
	}
	s.Rack = 2 * s.Hosts / 5
	at := s.sometime(r)
	s.Happenings = append(s.Happenings,
		Happening{At: at, What: Rack, For: 4*time.Minute + time.Duration(r.Int64N(int64(10*time.Minute)))},
		Happening{At: at + 45*time.Second + time.Duration(r.Int64N(int64(2*time.Minute))), What: RackIsOff},
	)
}
