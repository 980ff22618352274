package lifecycle

import (
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/placement"
)

// Judgement is where a VM would go now, and what keeps it from being moved whatever the node, in words; empty: nothing does.
type Judgement struct {
	placement.Decision
	Held string
}

// Judge decides where a VM would go now, to any node or to the one that is named, and keeps nothing of that. One that runs has no part in
// the figures that its start is judged by.
func (l *Lifecycle) Judge(vm model.VM, purpose placement.Purpose, node string) (Judgement, error) {
	snapshot := l.Store.Snapshot()
	search, err := l.search(snapshot, snapshot, vm, purpose)
	if err != nil {
		return Judgement{}, err
	}
	var judged Judgement
	if purpose.Moves() {
		memory, vcpus := l.Moment(snapshot).Size(&vm)
		search.ask(func(r *placement.Request) { r.Memory, r.VCPUs = memory, vcpus })
		if err := l.movable(snapshot, vm, &search, wantedMove{}); err != nil {
			judged.Held = err.Error()
		}
	}
	if node != "" {
		search.ask(func(r *placement.Request) { r.Pinned = node })
		search.only(snapshot, node)
	}
	judged.Decision = l.decide(search, lead.Berth)
	judged.DryRun = true
	return judged, nil
}
