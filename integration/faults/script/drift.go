package script

import (
	"math/rand/v2"
	"time"
)

// Drift is that people change with virsh what guests have while they run.
const Drift = "drift"

// How they change it.
const (
	VirshSnapshot What = "virsh snapshot-create-as --disk-only"
	VirshPivot    What = "virsh blockcopy --pivot"
	VirshCommit   What = "virsh blockcommit --pivot"
	VirshAttach   What = "virsh attach-disk"
	VirshDetach   What = "virsh detach-disk"
)

// VirshChanges are all of them.
var VirshChanges = []What{VirshSnapshot, VirshPivot, VirshCommit, VirshAttach, VirshDetach}

// drawDrift lets people do that in half of the sites whose nodes report what they show, also where VMs have files on their nodes, where the
// pool of their disks is another one on some nodes, or where agents are old; not where VMs have volumes, which are copied along. What is
// asked of a guest soon after is what tells whether the change was kept.
func drawDrift(s *Script, r *rand.Rand) {
	if len(s.Fences) == 0 || r.IntN(2) > 0 || s.Draws(Restore) || s.Disks > 0 {
		return
	}
	s.Drifts = true
	next := []What{Stop, Stop, GuestDies, Migrate, PowerCut, AgentDies, VirshMigrate, LeaderDies}
	for range 8 + r.IntN(24) {
		at, vm := s.sometime(r), r.IntN(s.VMs)
		change := Happening{At: at, What: append(VirshChanges, VirshSnapshot)[r.IntN(len(VirshChanges)+1)], VM: vm}
		s.Happenings = append(s.Happenings, change)
		soon := time.Duration(r.Int64N(int64(3 * time.Second)))
		if r.IntN(2) == 0 {
			soon *= 10
		}
		then := Happening{
			At: at + soon, What: next[r.IntN(len(next))], Host: r.IntN(min(s.Hosts, 8)), VM: vm, For: 20 * time.Second, Hard: r.IntN(2) == 0,
		}
		again := Happening{At: then.At + time.Duration(r.Int64N(int64(time.Minute))), What: Start, VM: vm}
		switch kind := r.IntN(6); {
		case kind < 2 || again.At >= s.Chaos: // nothing follows from it yet
		case kind == 2: // no leader hears of it while the guest runs
			gone := Happening{At: max(at-time.Second, 0), What: LeaderDies, For: 10 * time.Second}
			ends := Happening{At: at + 500*time.Millisecond, What: GuestDies, VM: vm}
			s.Happenings = append(s.Happenings, gone, ends, again)
		default:
			s.Happenings = append(s.Happenings, then, again)
		}
	}
}
