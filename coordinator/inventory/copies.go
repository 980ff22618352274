package inventory

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/model"
)

// Duplicate is a VM that more than one node shows at once, by nodes with a session.
type Duplicate struct {
	VM    string // UUID
	Name  string
	Nodes []string // IDs, sorted
	Since time.Time
}

// copyGrace is how long copies have to last before they count. Two nodes do not report at the same moment, so a VM that has
// just been migrated is seen on both.
const copyGrace = time.Second

// copies knows which nodes show a VM, those paused by a migration left out: within one, two are as they should be.
type copies struct {
	by   map[string]*holders // by UUID
	many map[string]*holders // those with more than one node: what several looks a second are about
}

func newCopies() copies {
	return copies{by: make(map[string]*holders), many: make(map[string]*holders)}
}

type holders struct {
	name  string
	nodes []string  // sorted
	since time.Time // when there came to be more than one
	told  bool
}

// recount brings a node's part of the copies up to date. A node without a session shows nothing: what it last said may be
// long past. The caller holds the lock.
func (s *Store) recount(id string, n *node) {
	shows := make(map[string]string)
	for i := range n.shown {
		if one := &n.shown[i]; n.counts(one) {
			shows[one.UUID] = one.Name
		}
	}
	for uuid := range n.counted {
		if _, still := shows[uuid]; !still {
			s.copies.remove(uuid, id)
		}
	}
	now := s.now()
	for uuid, name := range shows {
		s.copies.add(uuid, id, name, now)
	}
	n.counted = shows
}

// recountOne is recount where nothing but one domain has changed.
func (s *Store) recountOne(id string, n *node, uuid string) {
	facts := model.NodeFacts{Domains: n.shown}
	if one := facts.Domain(uuid); one != nil && n.counts(one) {
		s.copies.add(uuid, id, one.Name, s.now())
		n.counted[uuid] = one.Name
	} else if _, counted := n.counted[uuid]; counted {
		s.copies.remove(uuid, id)
		delete(n.counted, uuid)
	}
}

// counts tells whether a domain of the node is among the copies.
func (n *node) counts(one *model.Domain) bool {
	return n.session != nil && n.domainsKnown && one.State.Holds() && one.State != model.DomainPausedMigration
}

func (c copies) add(uuid, node, name string, now time.Time) {
	held := c.by[uuid]
	if held == nil {
		held = &holders{}
		c.by[uuid] = held
	}
	if held.add(node, name, now); len(held.nodes) > 1 {
		c.many[uuid] = held
	}
}

func (c copies) remove(uuid, node string) {
	held := c.by[uuid]
	held.remove(node)
	if len(held.nodes) == 0 {
		delete(c.by, uuid)
	}
	if len(held.nodes) < 2 {
		delete(c.many, uuid)
	}
}

func (h *holders) add(node, name string, now time.Time) {
	h.name = name
	at, there := slices.BinarySearch(h.nodes, node)
	if there {
		return
	}
	h.nodes = slices.Insert(h.nodes, at, node)
	if len(h.nodes) == 2 {
		h.since, h.told = now, false
	}
}

func (h *holders) remove(node string) {
	if at, there := slices.BinarySearch(h.nodes, node); there {
		h.nodes = slices.Delete(h.nodes, at, at+1)
	}
}

// lasting are the duplicates that have lasted and were not told of before.
func (c copies) lasting(now time.Time) []Duplicate {
	var found []Duplicate
	for uuid, held := range c.many {
		if !held.told && now.Sub(held.since) >= copyGrace {
			held.told = true
			found = append(found, held.duplicate(uuid))
		}
	}
	return sorted(found)
}

func (h *holders) duplicate(uuid string) Duplicate {
	return Duplicate{VM: uuid, Name: h.name, Nodes: slices.Clone(h.nodes), Since: h.since}
}

// Duplicates are the VMs that more than one node has shown for a second at least, by UUID.
func (s *Store) Duplicates() []Duplicate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.now()
	var found []Duplicate
	for uuid, held := range s.copies.many {
		if now.Sub(held.since) >= copyGrace {
			found = append(found, held.duplicate(uuid))
		}
	}
	return sorted(found)
}

// Copied are the UUIDs that more than one node has shown for a second at least, ascending.
func (s *Store) Copied() []string {
	found := s.Duplicates()
	uuids := make([]string, 0, len(found))
	for i := range found {
		uuids = append(uuids, found[i].VM)
	}
	return uuids
}

// Shown are the IDs of the nodes with a session that show a domain which holds memory, what a migration has paused left
// out; ascending.
func (s *Store) Shown(uuid string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if held := s.copies.by[uuid]; held != nil {
		return slices.Clone(held.nodes)
	}
	return nil
}

func sorted(found []Duplicate) []Duplicate {
	slices.SortFunc(found, func(a, b Duplicate) int { return cmp.Compare(a.VM, b.VM) })
	return found
}
