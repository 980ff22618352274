package script

import (
	"math/rand/v2"
	"time"
)

// Guests that libvirt does not migrate, jobs of others, and pools that are declared as shared and are not.
const (
	BoundGuest = "bound-guest" // somebody gives a guest a device of its host, until it ends
	ForeignJob = "foreign-job" // a backup of somebody else holds a guest for minutes
	LyingPool  = "lying-pool"  // what a host has under the name of a shared pool is another storage
)

// Attach and Backup are the first two of them, and what operators ask of the guest soon after is what they would have asked anyhow.
const (
	Attach What = "a host device is attached"
	Backup What = "somebody's backup begins" // For: until it ends
)

// drawBound binds guests in half of the sites whose nodes report what they show.
func drawBound(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(2) > 0 {
		return
	}
	for range 1 + r.IntN(4) {
		what, lasts := Attach, time.Duration(0)
		if r.IntN(2) == 0 {
			what, lasts = Backup, 2*time.Minute+time.Duration(r.Int64N(int64(4*time.Minute)))
		}
		at, vm := s.sometime(r), r.IntN(s.VMs)
		s.Happenings = append(s.Happenings, Happening{At: at, What: what, VM: vm, For: lasts})
		for range 3 {
			at += 20*time.Second + time.Duration(r.Int64N(int64(time.Minute)))
			if what = []What{Migrate, Migrate, Stop}[r.IntN(3)]; at < s.Chaos {
				s.Happenings = append(s.Happenings, Happening{At: at, What: what, VM: vm})
			}
		}
	}
}

// drawLyingPool gives every third of these sites a pool that is declared as shared, and one or two hosts another storage there; Old tells
// that files of the same names are there.
func drawLyingPool(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(3) > 0 || s.Draws(Restore) {
		return
	}
	s.Liars = append(s.Liars, r.IntN(s.Hosts))
	if other := r.IntN(s.Hosts); r.IntN(3) == 0 && other != s.Liars[0] {
		s.Liars = append(s.Liars, other)
	}
	s.OldFiles = r.IntN(2) == 0
}
