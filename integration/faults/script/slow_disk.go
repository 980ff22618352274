package script

import (
	"math/rand/v2"
	"time"
)

// drawSlowDisk lets the disk of the coordinator that leads take its time.
func drawSlowDisk(s *Script, r *rand.Rand) {
	if r.IntN(6) > 0 {
		return
	}
	s.Happenings = append(s.Happenings, Happening{
		At: s.sometime(r), What: SlowDisk, For: 10*time.Second + time.Duration(r.Int64N(int64(2*time.Minute))),
	})
}
