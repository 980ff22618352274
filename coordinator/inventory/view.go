package inventory

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
)

// viewLasts is how long a view is good for when nothing was heard since. Ages are counted from the moments that a view
// holds, so that they stay right; only a node's falling silent shows this much later than it could.
const viewLasts = 250 * time.Millisecond

// cached is a view with what it was made of.
type cached struct {
	snapshot *state.Snapshot
	changes  uint64
	view     *view.View
}

// View joins the hard facts of a snapshot with what the agents reported, as of now or a moment before: a burst of reads
// that nothing comes between shares one view. Nobody changes a view.
func (s *Store) View(snapshot *state.Snapshot, now time.Time) *view.View {
	if last := s.last.Load(); last != nil && last.snapshot == snapshot && s.unchanged(last.changes) {
		if age := now.Sub(last.view.At); age >= 0 && age < viewLasts {
			return last.view
		}
	}
	nodes, vms := snapshot.Nodes(), snapshot.VMs()
	var reservations []model.Reservation
	for _, live := range snapshot.LiveOperations() {
		if held, holds := live.Reservation(); holds {
			reservations = append(reservations, held)
		}
	}
	pools := snapshot.Resources(model.KindPool)
	var disks []model.Resource
	if len(pools) > 0 { // without a pool there is no volume
		disks = withVolume(snapshot.Resources(model.KindDisk), snapshot.Resources(model.KindImage))
	}
	made := &cached{snapshot: snapshot}
	facts := make(map[string]model.NodeFacts, len(nodes))
	s.mu.RLock()
	made.changes = s.changes
	apart := s.apart
	for i := range nodes {
		facts[nodes[i].ID] = s.facts(nodes[i].ID, now)
	}
	s.mu.RUnlock()
	made.view = view.New(now, snapshot.Index(), view.Records{
		Clusters: snapshot.Clusters(), Nodes: nodes, VMs: vms, Reservations: reservations, Groups: snapshot.Groups(),
		Pools: pools, Pods: snapshot.Resources(model.KindPod), Disks: disks, Apart: apart,
	}, facts)
	s.last.Store(made)
	return made.view
}

func (s *Store) unchanged(since uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changes == since
}

// withVolume are those of the disks and images that Berth has made.
func withVolume(kinds ...[]model.Resource) []model.Resource {
	var made []model.Resource
	for _, resources := range kinds {
		for i := range resources {
			if resources[i].Volume != nil {
				made = append(made, resources[i])
			}
		}
	}
	return made
}
