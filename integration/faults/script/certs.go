package script

import (
	"math/rand/v2"
	"time"
)

// drawCerts lets the certificate of an agent end.
func drawCerts(s *Script, r *rand.Rand) {
	if r.IntN(6) > 0 {
		return
	}
	s.Happenings = append(s.Happenings, Happening{
		At: s.sometime(r), What: Certs, Host: r.IntN(min(s.Hosts, 8)), For: 20*time.Second + time.Duration(r.Int64N(int64(4*time.Minute))),
	})
}
