package inventory

import (
	"iter"
	"slices"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// trail is how far a loop has taken in what changes.
type trail struct {
	store   *Store
	heard   *changes // what it follows of what nodes say
	records *state.Snapshot
	until   uint64 // of heard
	audit   audit
}

// audit comes by everything once a minute, whatever has changed: a part of it at each look. Nothing should be found so. But a node whose
// silence nobody sees is one whose guests nobody restarts.
type audit struct {
	off  bool
	last time.Time
	from string // the name that the next part begins with
}

// NodesTouched follows what a look at nodes depends on, for one loop: each call tells which nodes may be others than at the call before:
// something was heard of them or they fell silent, their records changed, or VMs or operations came, changed or left.
func (s *Store) NodesTouched() func(*state.Snapshot, time.Time) evidence.Touched {
	return (&trail{store: s, heard: &s.changes}).nodes
}

// VMsTouched follows what a look at VMs depends on that runs as its record has it: its record and those of its node and its disks, and
// what nodes list. What a node uses, and that it was heard once more, is not part of it.
func (s *Store) VMsTouched() func(*state.Snapshot, time.Time) evidence.Touched {
	return (&trail{store: s, heard: &s.stirred}).vms
}

// next takes in what has changed. It is false where that is not known.
func (t *trail) next(snapshot *state.Snapshot, now time.Time) (last *state.Snapshot, heard []string, changed []state.Change, known bool) {
	s := t.store
	s.views.turn(snapshot, now)
	s.mu.RLock()
	heard, known = t.heard.since(t.until)
	heard = slices.Clone(heard)      // the list goes on
	if !s.turning.taken.After(now) { // or what has turned for somebody who asked as of a later moment would not be seen at that
		t.until = t.heard.count()
	}
	s.mu.RUnlock()
	last, t.records = t.records, snapshot
	if last != nil && known {
		changed, known = snapshot.Since(last)
	}
	if last == nil || !known {
		t.audit.last = now // everything is looked at now
		return nil, nil, nil, false
	}
	return last, heard, changed, true
}

func (t *trail) nodes(snapshot *state.Snapshot, now time.Time) evidence.Touched {
	last, heard, changed, known := t.next(snapshot, now)
	if !known {
		return evidence.Touched{All: true}
	}
	touched := evidence.Touched{IDs: heard}
	add := func(ids ...string) { touched.IDs = append(touched.IDs, ids...) }
	for _, one := range changed {
		for _, x := range []*state.Snapshot{last, snapshot} {
			switch one.Table {
			case state.Nodes:
				add(one.ID)
			case state.VMs:
				if vm := x.SharedVM(one.ID); vm != nil {
					add(vm.Holder)
				}
				if op, works := x.LiveOperationOf(one.ID); works {
					add(op.Source, op.Target)
				}
			case state.Operations:
				if op, there := x.Operation(one.ID); there {
					add(op.Source, op.Target)
				}
			case state.Resources:
				if resource, there := x.Resource(one.ID); there && (resource.Kind == model.KindCluster || resource.Kind == model.KindPod) {
					return evidence.Touched{All: true}
				}
			}
		}
	}
	for node := range part(&t.audit, now, snapshot.CountNodes(), snapshot.SharedNodesFrom, func(n *model.Node) string { return n.Name }) {
		add(node.ID)
	}
	return touched
}

func (t *trail) vms(snapshot *state.Snapshot, now time.Time) evidence.Touched {
	_, heard, changed, known := t.next(snapshot, now)
	if !known {
		return evidence.Touched{All: true}
	}
	var touched evidence.Touched
	nodes := heard
	for _, one := range changed {
		switch one.Table {
		case state.VMs:
			touched.IDs = append(touched.IDs, one.ID)
		case state.Nodes:
			nodes = append(nodes, one.ID)
		case state.Resources:
			if resource, _ := snapshot.Resource(one.ID); resource.Kind == model.KindDisk {
				for _, vm := range snapshot.VMsLinkedTo(one.ID) {
					touched.IDs = append(touched.IDs, vm.ID)
				}
			}
		}
	}
	for _, node := range nodes {
		touched.IDs = append(touched.IDs, listedBy(t.store, node)...)
		for vm := range snapshot.SharedVMsOn(node) {
			touched.IDs = append(touched.IDs, vm.ID)
		}
	}
	for vm := range part(&t.audit, now, snapshot.CountVMs(), snapshot.SharedVMsFrom, func(vm *model.VM) string { return vm.Name }) {
		touched.IDs = append(touched.IDs, vm.ID)
	}
	return touched
}

// listedBy are the UUIDs of the domains that a node lists.
func listedBy(s *Store, node string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	uuids := make([]string, len(n.shown))
	for i := range n.shown {
		uuids[i] = n.shown[i].UUID
	}
	return uuids
}

// part is the part of all records that it is time to look at, from a name on.
func part[Row any](a *audit, now time.Time, all int, from func(name string) iter.Seq[*Row], name func(*Row) string) iter.Seq[*Row] {
	lasted := now.Sub(a.last)
	a.last = now
	few := int(min(lasted, auditEvery)*time.Duration(all)/auditEvery) + 1
	return func(yield func(*Row) bool) {
		if a.off {
			return
		}
		for row := range from(a.from) {
			if few--; few < 0 {
				a.from = name(row)
				return
			}
			if !yield(row) {
				return
			}
		}
		a.from = ""
	}
}

// alike tells whether two lists of domains, each by UUID, differ in nothing that a look at VMs which run as they should depends on.
func alike(before, after []model.Domain) bool {
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		a, b := &before[i], &after[i]
		if a.UUID != b.UUID || a.Name != b.Name || a.State != b.State || a.Managed != b.Managed || a.Epoch != b.Epoch ||
			a.Autostart != b.Autostart || a.Persistent != b.Persistent {
			return false
		}
	}
	return true
}
