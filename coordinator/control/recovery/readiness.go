package recovery

import (
	"context"
	"maps"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pause"
)

// How often VMs that are to be highly available are asked where they would be started again: each is a decision over all nodes, so one is
// made at a time, and a small part of the leader's time goes into them.
const (
	readinessEvery = time.Minute            // between the begins of two passes over all of them
	readinessPause = 100 * time.Millisecond // between two of them
)

// Nowhere are the VMs that are to be highly available and that no other node would take, with the reason, by ID, as they were found last.
func (r *Recovery) Nowhere() map[string]string {
	r.ready.mu.Lock()
	defer r.ready.mu.Unlock()
	return maps.Clone(r.ready.nowhere)
}

// RunReadiness looks for them until the context ends.
func (r *Recovery) RunReadiness(ctx context.Context) {
	r.found(map[string]string{}) // of an earlier leadership
	for pause.For(ctx, readinessEvery) {
		snapshot := r.Store.Snapshot()
		if lead.Quarantined(snapshot) != nil || !r.Inventory.Settled(snapshot, r.Now()) {
			continue
		}
		found := map[string]string{}
		for _, id := range available(snapshot) {
			now := r.Store.Snapshot()
			if vm, there := now.VM(id); there && vm.HA && vm.Guarded() && vm.Holder != "" {
				if why := r.starter.Elsewhere(now, vm); why != "" {
					found[id] = why
				}
			}
			if !pause.For(ctx, readinessPause) {
				return
			}
		}
		r.found(found)
	}
}

func (r *Recovery) found(nowhere map[string]string) {
	r.ready.mu.Lock()
	defer r.ready.mu.Unlock()
	r.ready.nowhere = nowhere
}

// available are the IDs of VMs that run and are to be highly available.
func available(snapshot *state.Snapshot) (ids []string) {
	for _, vm := range snapshot.VMsMarked(model.MarkGuarded) {
		if vm.Holder != "" {
			ids = append(ids, vm.ID)
		}
	}
	return ids
}
