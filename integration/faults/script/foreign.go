package script

import "math/rand/v2"

// What others do with Berth's guests.
const (
	VirshMigrate What = "virsh migrate" // to Host
	VirshDestroy What = "virsh destroy"
	VirshStart   What = "virsh start" // on Host, from what somebody has kept of its definition
)

// drawForeign lets people use virsh in half of the sites whose nodes report what they show.
func drawForeign(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(2) > 0 {
		return
	}
	add := func(what What) {
		s.Happenings = append(s.Happenings, Happening{At: s.sometime(r), What: what, Host: r.IntN(s.Hosts), VM: r.IntN(s.VMs)})
	}
	for range 1 + r.IntN(6) {
		add(VirshMigrate)
	}
	for range r.IntN(3) {
		add(VirshDestroy)
	}
	for range r.IntN(5) {
		add(VirshStart)
	}
}
