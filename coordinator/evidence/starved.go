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

// pausedText says where a guest is paused for want of space, for who sees no more of it.
func pausedText(node, name string) string {
	return fmt.Sprintf("paused on %s because a disk of it failed or found no room: make room where its disks are; 'virsh resume %s' there "+
		"lets it run at once", node, name)
}
