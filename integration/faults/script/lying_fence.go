package script

import "math/rand/v2"

// drawLies gives some of the sites fence devices that say "off" of machines which run on. It is not drawn where a host never returns:
// a device that always lies would leave its VMs waiting.
func drawLies(s *Script, r *rand.Rand) {
	if len(s.Fences) > 0 && r.IntN(3) == 0 && !s.Draws(Dies) {
		s.Mix.FenceLies = []int{300, 700}[r.IntN(2)]
	}
}
