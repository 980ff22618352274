package script

import "math/rand/v2"

// What others do with Berth's guests.
const (
	VirshMigrate What = "virsh migrate" // to Host
)

// drawForeign lets people use virsh in half of the sites whose nodes report what they show.
func drawForeign(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(2) > 0 {
		return
	}
	for range 1 + r.IntN(6) {
		s.Happenings = append(s.Happenings, Happening{At: s.sometime(r), What: VirshMigrate, Host: r.IntN(s.Hosts), VM: r.IntN(s.VMs)})
	}
}
