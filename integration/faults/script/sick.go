package script

import (
	"math/rand/v2"
	"time"

	"berth/coordinator/model"
)

// drawSick lets the libvirtd of a host hang for longer than its site wants to wait, in some of the sites whose nodes report.
func drawSick(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(6) > 0 {
		return
	}
	s.SickAfter = model.MinFenceSickAfter
	s.Chaos = max(s.Chaos, 10*time.Minute)
	s.Happenings = append(s.Happenings, Happening{
		At: time.Duration(r.Int64N(int64(3 * time.Minute))), What: Sick, Host: r.IntN(s.Hosts),
		For: s.SickAfter + time.Minute + time.Duration(r.Int64N(int64(2*time.Minute))),
	})
}
