package inventory

import (
	"iter"
	"slices"
	"sync"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
)

// viewLasts is how long a view is good for when nothing was heard since. Ages are counted from the moments that a view
// holds, so that they stay right; only a node's falling silent shows this much later than it could.
const viewLasts = 250 * time.Millisecond

// keptViews is how many views are kept to make later ones of: callers that read their snapshot a little earlier find theirs.
const keptViews = 16

// cached is a view with what it was made of.
type cached struct {
	snapshot *state.Snapshot
	changes  uint64
	view     *view.View
}

// views are those that were made of a store's facts.
type views struct {
	store *Store

	making sync.Mutex // two callers at a time would do the same work
	made   []*cached  // last, the oldest first
}

// View joins the hard facts of a snapshot with what the agents reported, as of now or a moment before: a burst of reads
// that nothing comes between shares one view. Nobody changes a view. It is made of an earlier one where that is known: it costs
// what has changed since, and not what there is.
func (s *Store) View(snapshot *state.Snapshot, now time.Time) *view.View {
	return s.views.at(snapshot, now)
}

func (v *views) at(snapshot *state.Snapshot, now time.Time) *view.View {
	v.making.Lock()
	defer v.making.Unlock()
	v.turn(snapshot, now)
	base, changed := v.base(snapshot, now)
	if base != nil && base.snapshot == snapshot && v.unchanged(base.changes) {
		if age := now.Sub(base.view.At); age >= 0 && age < viewLasts {
			return base.view
		}
	}
	var made *cached
	if base != nil {
		made = v.later(base, changed, snapshot, now)
	}
	if made == nil {
		made = v.anew(snapshot, now)
	}
	if v.isLate(now) {
		return made.view // what time has changed since then counts as taken in, and this view does not have it
	}
	if len(v.made) == keptViews {
		v.made = slices.Delete(v.made, 0, 1)
	}
	v.made = append(v.made, made)
	return made.view
}

// isLate tells that nodes have turned for somebody who asked as of a later moment.
func (v *views) isLate(now time.Time) bool {
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	return now.Before(v.store.turning.taken)
}

// base is the view made last of those that one of a snapshot can be made of, and the records that differ.
func (v *views) base(snapshot *state.Snapshot, now time.Time) (*cached, []state.Change) {
	for _, one := range slices.Backward(v.made) {
		if changed, known := snapshot.Since(one.snapshot); known && !one.view.At.After(now) {
			return one, changed
		}
	}
	return nil, nil
}

// anew makes a view of all that there is.
func (v *views) anew(snapshot *state.Snapshot, now time.Time) *cached {
	s := v.store
	made := &cached{snapshot: snapshot}
	records := view.Records{
		Clusters: snapshot.Clusters(), Nodes: snapshot.Nodes(), Reservations: snapshot.Reservations(), Groups: snapshot.Groups(),
	}
	storageOf(snapshot, &records)
	facts := make(map[string]model.NodeFacts, len(records.Nodes))
	s.mu.RLock()
	made.changes, records.Apart = s.changes.count(), s.apart
	for i := range records.Nodes {
		id := records.Nodes[i].ID
		facts[id] = s.facts(id, now)
	}
	s.mu.RUnlock()
	made.view = view.Over(now, snapshot.Index(), records, stored{snapshot}, facts)
	return made
}

// later makes a view of an earlier one. It is nil where that cannot be: where a cluster has changed, or too much was heard.
func (v *views) later(base *cached, changed []state.Change, snapshot *state.Snapshot, now time.Time) *cached {
	changes := view.Changes{Nodes: make(map[string]model.NodeFacts)}
	records := view.Records{Reservations: snapshot.Reservations()}
	for _, one := range changed {
		switch one.Table {
		case state.VMs:
			changes.VMs = append(changes.VMs, one.ID)
		case state.Nodes:
			if record, is := snapshot.Node(one.ID); is {
				changes.Nodes[one.ID] = model.NodeFacts{}
				records.Nodes = append(records.Nodes, record)
			} else if base.view.Node(one.ID) != nil && !slices.Contains(changes.Gone, one.ID) {
				changes.Gone = append(changes.Gone, one.ID)
			}
		case state.Resources:
			for _, x := range []*state.Snapshot{base.snapshot, snapshot} {
				resource, there := x.Resource(one.ID)
				switch {
				case !there:
				case resource.Kind == model.KindCluster:
					return nil
				case resource.Kind == model.KindGroup:
					changes.Groups = true
				case resource.Kind == model.KindPool, resource.Volume != nil:
					changes.Storage = true
				}
			}
		}
	}
	made := &cached{snapshot: snapshot}
	var known bool
	if made.changes, known = v.hear(base, changes.Nodes, now); !known {
		return nil
	}
	if changes.Groups || changes.Storage {
		records.Clusters, records.Groups, records.Apart = snapshot.Clusters(), snapshot.Groups(), base.view.Apart()
		storageOf(snapshot, &records)
	}
	made.view = base.view.Later(now, snapshot.Index(), records, stored{snapshot}, changes)
	return made
}

// hear gathers the facts of some nodes, and of those that differ from what a view shows: by what was heard since, or by the passing of
// time. It tells what was heard by then.
func (v *views) hear(base *cached, facts map[string]model.NodeFacts, now time.Time) (changes uint64, known bool) {
	s := v.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	heard, known := s.changes.since(base.changes)
	if !known {
		return 0, false
	}
	for _, id := range heard {
		if base.view.Node(id) != nil {
			facts[id] = model.NodeFacts{}
		}
	}
	for id := range facts {
		facts[id] = s.facts(id, now)
	}
	return s.changes.count(), true
}

// storageOf adds what a view knows of pools and volumes.
func storageOf(snapshot *state.Snapshot, records *view.Records) {
	records.Pools = snapshot.Resources(model.KindPool)
	if len(records.Pools) > 0 { // without a pool there is no volume
		records.Disks = withVolume(snapshot.Resources(model.KindDisk), snapshot.Resources(model.KindImage))
	}
}

func (v *views) unchanged(since uint64) bool {
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	return v.store.changes.count() == since
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

// VMsOf are the VMs of a snapshot, for a view of them.
func VMsOf(snapshot *state.Snapshot) view.VMs { return stored{snapshot} }

// stored are the VMs of a snapshot.
type stored struct{ snapshot *state.Snapshot }

func (s stored) ByID(id string) *model.VM { return s.snapshot.SharedVM(id) }

func (s stored) On(node string) iter.Seq[*model.VM] { return s.snapshot.SharedVMsOn(node) }

func (s stored) All() iter.Seq[*model.VM] { return s.snapshot.SharedVMs() }
