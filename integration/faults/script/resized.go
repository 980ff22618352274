package script

import (
	"math/rand/v2"
	"time"
)

// Resized is that people resize with virsh, or with qemu-img while they are off, the disks of VMs.
const Resized = "resized"

// How they do it. Other is what the disk gets, in quarters of a GiB.
const (
	VirshBlockresize What = "virsh blockresize"
	QemuImgResize    What = "qemu-img resize"
	largestDisk           = 12
)

// Resizes are both.
var Resizes = []What{VirshBlockresize, QemuImgResize}

// drawResized lets people do that in a third of the sites whose VMs have disks on their nodes. A move with the disk soon after tells
// whether it is known.
func drawResized(s *Script, r *rand.Rand) {
	if s.Disks == 0 || len(s.Fences) == 0 || s.Draws(Restore) || r.IntN(3) > 0 {
		return
	}
	for range 4 + r.IntN(12) {
		at, vm := s.sometime(r), r.IntN(s.Disks)
		what := append(Resizes, VirshBlockresize)[r.IntN(len(Resizes)+1)]
		s.Happenings = append(s.Happenings, Happening{At: at, What: what, VM: vm, Other: 1 + r.IntN(largestDisk)})
		if then := at + time.Duration(r.Int64N(int64(20*time.Second))); then < s.Chaos && r.IntN(3) > 0 {
			s.Happenings = append(s.Happenings, Happening{At: then, What: Migrate, VM: vm})
		}
	}
}
