package inventory

import (
	"time"

	"berth/coordinator/agenda"
	"berth/coordinator/state"
)

// turning is when the passing of time next changes what is told of each node, so that nobody has to look at all nodes to see which have
// fallen silent. A node that is heard meanwhile turns later than is noted here: that is seen when the noted time comes.
type turning struct {
	agenda  agenda.Agenda
	members *state.Snapshot // whose nodes are in the agenda; nil: none are yet
	taken   time.Time       // the latest moment at which nodes have turned
	audited time.Time       // when all nodes were looked at last
}

// auditEvery is how often all nodes are looked at, whatever is noted of them. Nothing should be found so. But a node whose silence nobody
// sees is one whose guests nobody restarts.
const auditEvery = time.Minute

// audit has all nodes looked at next, if it is time.
func (t *turning) audit(now time.Time) {
	if now.Sub(t.audited) >= auditEvery {
		t.members, t.audited = nil, now
	}
}

// turn takes in what the passing of time has changed until now, of the nodes of a snapshot.
func (v *views) turn(snapshot *state.Snapshot, now time.Time) {
	s := v.store
	s.mu.RLock()
	_, at, there := s.turning.agenda.First()
	due := s.turning.members != snapshot || there && !at.After(now)
	s.mu.RUnlock()
	if due {
		s.mu.Lock()
		defer s.mu.Unlock()
		turnNow(s, snapshot, now)
	}
}

// turnNow is turn of somebody who holds the lock.
func turnNow(s *Store, snapshot *state.Snapshot, now time.Time) {
	s.turning.enlist(snapshot)
	for _, id := range s.turning.agenda.Due(now) {
		n := s.nodes[id]
		if n == nil || n.session == nil || now.Sub(n.heardAt) > n.pace.Suspect() {
			s.changes.note(id)
			if s.turning.taken.Before(now) {
				s.turning.taken = now
			}
		}
		s.publishLiveness(id, now)
		s.turning.agenda.Set(id, s.turns(s.nodes[id], now))
	}
}

// enlist has the nodes of a snapshot in the agenda, and no others. Those that are new there are looked at at once.
func (t *turning) enlist(snapshot *state.Snapshot) {
	last := t.members
	if last == snapshot {
		return
	}
	if last != nil {
		if changed, known := snapshot.Since(last); known {
			for _, one := range changed {
				_, in := t.agenda.At(one.ID)
				switch is := one.Table == state.Nodes && snapshot.HasNode(one.ID); {
				case is && !in:
					t.agenda.Set(one.ID, time.Time{})
				case in && !is && one.Table == state.Nodes:
					t.agenda.Remove(one.ID)
				}
			}
			t.members = snapshot
			return
		}
		if _, older := last.Since(snapshot); older {
			return // somebody has read it a moment earlier
		}
	}
	t.agenda, t.members = agenda.Agenda{}, snapshot
	for node := range snapshot.SharedNodes() {
		t.agenda.Set(node.ID, time.Time{})
	}
}

// sooner takes note that a node may turn before the time that is noted.
func (t *turning) sooner(id string, at time.Time) {
	if _, member := t.agenda.At(id); member {
		t.agenda.Set(id, at)
	}
}
