package script

import (
	"math/rand/v2"
	"time"
)

// NoSpace is a pool that fills up: guests that write to it find no room, and are paused.
const NoSpace = "no-space"

// PoolFills is that, on one host. For is until somebody makes room. Hard: somebody looks after some of the guests by hand then, lets them
// run, and pauses them.
const PoolFills What = "pool has no space left"

// drawNoSpace fills pools in some of the sites whose nodes report.
func drawNoSpace(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(4) > 0 {
		return
	}
	for range 1 + r.IntN(3) {
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: PoolFills, Host: r.IntN(min(s.Hosts, 8)), For: 10*time.Second + time.Duration(r.Int64N(int64(3*time.Minute))),
			Hard: r.IntN(2) == 0,
		})
	}
}
