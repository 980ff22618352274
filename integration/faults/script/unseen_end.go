package script

import "math/rand/v2"

// EndsUnseen is a migration whose last answer is lost, so that the guest runs on at its source, and ends there while its agent is away.
const EndsUnseen What = "a guest ends unseen after its migration"

// drawUnseenEnd lets that happen in every third site.
func drawUnseenEnd(s *Script, r *rand.Rand) {
	if r.IntN(3) > 0 {
		return
	}
	for range 1 + r.IntN(2) {
		s.Happenings = append(s.Happenings, Happening{At: s.sometime(r), What: EndsUnseen, VM: r.IntN(s.VMs)})
	}
}
