package script

import (
	"math/rand/v2"
	"time"
)

// BothAway is that the agent and the libvirtd of a host are away at the same time, and come back one after the other.
const BothAway = "both-away"

// TogetherDown is how that happens: For is how long both are away, and Hard that the agent is the first to be back.
const TogetherDown What = "agent and daemon die together"

// drawBothAway does that to some hosts, in half of the sites.
func drawBothAway(s *Script, r *rand.Rand) {
	if r.IntN(2) > 0 {
		return
	}
	for range 1 + r.IntN(3) {
		lasts := time.Duration(r.Int64N(int64(20 * time.Second)))
		if r.IntN(2) == 0 { // long enough for its node to count as silent
			lasts += 40 * time.Second
		}
		s.Happenings = append(s.Happenings, Happening{
			At: s.sometime(r), What: TogetherDown, Host: r.IntN(min(s.Hosts, 8)), For: lasts, Hard: r.IntN(2) == 0,
		})
	}
}
