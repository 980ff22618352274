package recovery

import (
	"context"
	"maps"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/state"
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
	for passes(ctx, readinessEvery) {
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
			if !passes(ctx, readinessPause) {
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
	for _, vm := range snapshot.VMs() {
		if vm.HA && vm.Holder != "" {
			ids = append(ids, vm.ID)
		}
	}
	return ids
}

// passes waits, and is false when the context ends first.
func passes(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
