package script

import (
	"math/rand/v2"
	"time"
)

// Restored is a backup of the coordinators' state that is restored while the site runs: it does not know what people have done since.
const Restored = "restored"

// What people do about it.
const (
	BackUp  What = "backup"
	HandOn  What = "disk is handed on" // of VM, to VM Other, once both are stopped
	Restore What = "backup is restored"
)

// drawRestored restores a backup in some of the sites whose nodes report. Before that people stop VMs, and give the disk of one to another.
// It is not drawn where messages come out of order: whether a node has ended what it was told before is heard on an ordered stream only.
func drawRestored(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || s.Mix.Wild || r.IntN(2) > 0 {
		return
	}
	at := 10*time.Second + time.Duration(r.Int64N(int64(s.Chaos)/2))
	later := func(most time.Duration) time.Duration {
		at += time.Second + time.Duration(r.Int64N(int64(most)))
		return at
	}
	s.Happenings = append(s.Happenings, Happening{At: at, What: BackUp})
	for range 1 + r.IntN(3) {
		s.Happenings = append(s.Happenings, Happening{At: later(10 * time.Second), What: Stop, VM: r.IntN(s.VMs)})
	}
	if s.VMs > 1 {
		vm := r.IntN(s.VMs)
		other := (vm + 1 + r.IntN(s.VMs-1)) % s.VMs
		s.Happenings = append(s.Happenings, Happening{At: later(20 * time.Second), What: HandOn, VM: vm, Other: other})
	}
	s.Happenings = append(s.Happenings, Happening{At: later(time.Minute), What: Restore})
}
