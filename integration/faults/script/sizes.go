package script

import (
	"math/rand/v2"
	"time"
)

// Sizes is that people change with virsh how large guests are.
const Sizes = "sizes"

// How they change it: of the guest that runs, of its definition as somebody has kept it, or of both. Other is what it gets: GiB, or vCPUs.
const (
	VirshSetmem        What = "virsh setmem --live"
	VirshSetmemKept    What = "virsh setmem --config"
	VirshSetmemBoth    What = "virsh setmem --live --config"
	VirshSetvcpus      What = "virsh setvcpus --live"
	VirshSetvcpusKept  What = "virsh setvcpus --config"
	VirshSetvcpusBoth  What = "virsh setvcpus --live --config"
	AcceptSize         What = "berth vm accept, of a size"
	largestMemory           = 4 // GiB
	largestVCPUs            = 8
	changesOfASizeMost      = 24
)

// VirshSizes are the ways in which people change a size beside Berth.
var VirshSizes = []What{VirshSetmem, VirshSetmemKept, VirshSetmemBoth, VirshSetvcpus, VirshSetvcpusKept, VirshSetvcpusBoth}

// SizeParts tells what of a guest such a change is of: the one that runs, and what is kept of its definition.
func SizeParts(what What) (live, kept bool) {
	return what != VirshSetmemKept && what != VirshSetvcpusKept, what != VirshSetmem && what != VirshSetvcpus
}

// SetsMemory tells whether it changes the memory, and not the vCPUs.
func SetsMemory(what What) bool {
	return what == VirshSetmem || what == VirshSetmemKept || what == VirshSetmemBoth
}

// drawSizes lets people do that in half of the sites whose nodes report what they show, of whatever kind. What is asked of the site soon
// after tells whether the change is counted.
func drawSizes(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(2) > 0 {
		return
	}
	s.Sizes = true
	next := []What{
		Stop, GuestDies, Migrate, Migrate, PowerCut, AgentDies, DaemonDies, VirshMigrate, VirshDestroy, VirshStart, LeaderDies, AcceptSize,
	}
	for range 6 + r.IntN(changesOfASizeMost) {
		at, vm := s.sometime(r), r.IntN(s.VMs)
		change := Happening{At: at, What: VirshSizes[r.IntN(len(VirshSizes))], VM: vm, Other: 1 + r.IntN(largestVCPUs)}
		if SetsMemory(change.What) {
			change.Other = 1 + r.IntN(largestMemory)
		}
		s.Happenings = append(s.Happenings, change)
		if r.IntN(3) == 0 { // nothing follows from it yet
			continue
		}
		then := Happening{
			At: at + time.Duration(r.Int64N(int64(90*time.Second))), What: next[r.IntN(len(next))], Host: r.IntN(min(s.Hosts, 8)), VM: vm,
			For: 20 * time.Second, Hard: r.IntN(2) == 0,
		}
		again := Happening{At: then.At + time.Duration(r.Int64N(int64(time.Minute))), What: Start, VM: r.IntN(s.VMs)}
		if again.At < s.Chaos {
			s.Happenings = append(s.Happenings, then, again)
		}
	}
}
