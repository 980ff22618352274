package script

import (
	"math/rand/v2"
	"time"
)

// What happens to the coordinators' machines. Other is the coordinator; For: until then.
const (
	DiskSlows  What = "disk slows down"
	ClockErrs  What = "clock is years ahead"
	Deafens    What = "no agent reaches a coordinator"
	YearsAhead      = 73 * 365 * 24 * time.Hour
)

func slowDisk(s *Script, r *rand.Rand) {
	if r.IntN(5) == 0 {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: DiskSlows, Other: r.IntN(s.Members), For: time.Duration(r.Int64N(int64(3 * time.Minute))),
		})
	}
}

func deafLeader(s *Script, r *rand.Rand) {
	if r.IntN(5) == 0 {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: Deafens, Other: r.IntN(s.Members), For: time.Minute + time.Duration(r.Int64N(int64(4*time.Minute))),
		})
	}
}

func wrongClock(s *Script, r *rand.Rand) {
	if r.IntN(5) == 0 {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: ClockErrs, Other: r.IntN(s.Members), For: time.Duration(r.Int64N(int64(3 * time.Minute))),
		})
	}
}
