package script

import "math/rand/v2"

// Dies is the end of a host: nobody switches it on again. Hard: and nobody says that it is off, as long as the run lasts.
const Dies What = "never comes back"

// drawNeverBack lets a host die in every third site whose nodes are fenced.
func drawNeverBack(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(3) > 0 {
		return
	}
	s.Happenings = append(s.Happenings, Happening{At: s.sometime(r), What: Dies, Host: r.IntN(s.Hosts), Hard: r.IntN(2) == 0})
}
