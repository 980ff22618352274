package inventory

import (
	"slices"

	"berth/coordinator/model"
)

// showing knows the nodes that list a domain, in whatever state and whether they are heard now or not. Most domains are on one node.
type showing map[string][]string // IDs of nodes, ascending, by UUID

func (w showing) add(uuid, node string) {
	if at, there := slices.BinarySearch(w[uuid], node); !there {
		w[uuid] = slices.Insert(w[uuid], at, node)
	}
}

func (w showing) remove(uuid, node string) {
	at, there := slices.BinarySearch(w[uuid], node)
	switch {
	case !there:
	case len(w[uuid]) == 1:
		delete(w, uuid)
	default:
		w[uuid] = slices.Delete(w[uuid], at, at+1)
	}
}

// relist brings a node's part of that up to date, after its domains were before. The caller holds the lock.
func (s *Store) relist(id string, before, now []model.Domain) {
	for len(before)+len(now) > 0 {
		switch { // both are in the order of their UUIDs
		case len(now) == 0 || len(before) > 0 && before[0].UUID < now[0].UUID:
			s.showing.remove(before[0].UUID, id)
			before = before[1:]
		case len(before) == 0 || now[0].UUID < before[0].UUID:
			s.showing.add(now[0].UUID, id)
			now = now[1:]
		default:
			before, now = before[1:], now[1:]
		}
	}
}

// MayShow are the IDs of the nodes that list a domain of a UUID, in whatever state and whenever they were heard last, and of those that
// have a session and have told no inventory yet, so that nobody knows what they will list.
func (s *Store) MayShow(uuid string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	nodes := slices.Clone(s.showing[uuid])
	for id := range s.untold {
		nodes = append(nodes, id)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
