package script

import (
	"math/rand/v2"
	"time"
)

// drawSitePower cuts the power of a whole site.
func drawSitePower(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(8) > 0 {
		return
	}
	s.Happenings = append(s.Happenings, Happening{
		At: s.sometime(r), What: SitePower, For: 10*time.Second + time.Duration(r.Int64N(int64(3*time.Minute))),
	})
}
