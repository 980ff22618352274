package lifecycle

import (
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/state"
)

// Elsewhere says why a VM would be restarted nowhere if its node were lost now; empty: some node would take it. That the other VMs of its
// node would need room as well is not counted: the headroom of a cluster looks after that.
func (p *Placer) Elsewhere(snapshot *state.Snapshot, vm model.VM) string {
	search, err := p.search(snapshot, snapshot, vm, placement.ForStart)
	if err != nil {
		return err.Error()
	}
	search.ask(func(r *placement.Request) {
		r.Restart, r.Excluded = true, append(r.Excluded, vm.Holder)
	})
	decision := across.Place(search.view, search.Search, p.Random())
	if decision.Outcome != placement.Refused {
		return ""
	}
	return decision.Reason
}
