package evidence

import (
	"fmt"

	"berth/coordinator/model"
)

// roomFrom is how full a pool may be, in per cent, for a guest to run on that it had no room for.
const roomFrom = 95

// starved is a guest that its hypervisor has paused because a disk of it failed or found no room.
type starved struct {
	pool string // the fullest of those that its disks are in; empty: none is known
	room bool   // there is room in all of them
}

// starvedOf looks at the pools of a guest that stands still for want of space; nil: it does not.
func starvedOf(domain *model.Domain, facts *model.NodeFacts) *starved {
	if domain == nil || domain.State != model.DomainPaused || domain.Reason != model.ReasonIOError {
		return nil
	}
	found, fullest := &starved{}, int64(-1)
	for _, source := range domain.Sources {
		volume := inPool(source, facts)
		for _, pool := range facts.Pools {
			if pool.Name != volume.Pool || !pool.Active || pool.Capacity <= 0 {
				continue
			}
			if used := 100 - int64(pool.Available)/max(int64(pool.Capacity)/100, 1); used > fullest {
				fullest, found.pool, found.room = used, pool.Name, used < roomFrom
			}
		}
	}
	return found
}

// besideStarved judges a guest that stands still for want of space where it should be. Its text says no figures: they change with each
// look.
func besideStarved(vm model.VM, here Copy, s *starved) Finding {
	if s.pool == "" {
		return alarm(here.Node, "paused on %s because a disk of it failed or found no room: make room where its disks are, and 'virsh resume "+
			"%s' there lets it run", here.Name, vm.Name)
	}
	finding := alarm(here.Node, "paused on %s because a disk of it failed or found no room: when pool %s there is less than %d %% full it "+
		"runs on by itself; delete or move disks, or make the pool larger; 'virsh resume %s' there lets it run at once",
		here.Name, s.pool, roomFrom, vm.Name)
	if s.room {
		finding.Verdict = HasRoom
	}
	return finding
}

// besideCrashed judges a guest that has crashed, and whose memory its hypervisor has kept. That is an end: if the VM is to be highly
// available it makes way for a restart.
func besideCrashed(vm model.VM, here Copy) Finding {
	if vm.HA && vm.Desired == model.Running {
		finding := alarm(here.Node, "its guest has crashed on %s: what is left of it there is removed, and it is restarted", here.Name)
		finding.Verdict, finding.Node = HasCrashed, here.Node
		return finding
	}
	return alarm(here.Node, "its guest has crashed on %s, which keeps its memory for whoever wants to look into it ('virsh dump %s FILE "+
		"--memory-only' there): 'berth vm stop %s' ends that, and 'berth vm start %s' starts it again", here.Name, vm.Name, vm.Name, vm.Name)
}

// pausedText says where a guest is paused for want of space, for who sees no more of it.
func pausedText(node, name string) string {
	return fmt.Sprintf("paused on %s because a disk of it failed or found no room: make room where its disks are; 'virsh resume %s' there "+
		"lets it run at once", node, name)
}
