package placement

import (
	"berth/coordinator/model"
	"berth/coordinator/placement/planner"
	"berth/coordinator/view"
)

// MaxRequestDisks is how many disks a request may have.
const MaxRequestDisks = model.MaxDisks

// needs is what a request with a planner asks of the nodes' surroundings.
func (r *Request) needs(plan *planner.Planner) view.Needs {
	needs := view.Needs{Pools: len(r.Disks) > 0, Networks: r.Networks, HostCPU: r.PassedCPU != ""}
	if r.CPU != model.CPUHostPassthrough {
		needs.CPU = r.CPU
	}
	if plan.Accounts {
		needs.Customer = r.Owner.Customer
	}
	return needs
}

// pools are where the disks go that are to be made on a node.
func (e *Engine) pools(node int) []PoolChoice {
	if len(e.input.Disks) == 0 {
		return nil
	}
	allotted, short := e.input.Allot(node)
	if short.Cause != "" { // a policy that has no constraint of storage places it all the same
		return nil
	}
	var choices []PoolChoice
	for d := range e.input.Disks {
		if allotted[d] >= 0 {
			pool := &e.input.Columns.Pools[allotted[d]]
			choice := PoolChoice{Disk: e.input.Disks[d].ID, Pool: pool.ID, PoolName: pool.Name}
			if disk := &e.input.Disks[d]; len(disk.ImagePlaces) > 0 {
				if image := e.input.ImageOn(disk, node, int(allotted[d])); image >= 0 {
					choice.ImagePool = e.input.Columns.Pools[image].ID
				}
			}
			choices = append(choices, choice)
		}
	}
	return choices
}
