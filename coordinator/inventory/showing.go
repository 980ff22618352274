package inventory

import (
	"slices"

	"berth/coordinator/model"
)

// showing knows the nodes that list a domain, in whatever state and whether they are heard now or not; or a domain with a disk of a name.
// Most domains are on one node.
type showing map[string][]string // IDs of nodes, ascending, by UUID or name

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
	all := now
	var were, are []model.DiskSource
	for len(before)+len(now) > 0 {
		switch { // both are in the order of their UUIDs
		case len(now) == 0 || len(before) > 0 && before[0].UUID < now[0].UUID:
			s.showing.remove(before[0].UUID, id)
			were = append(were, before[0].Sources...)
			before = before[1:]
		case len(before) == 0 || now[0].UUID < before[0].UUID:
			s.showing.add(now[0].UUID, id)
			are = append(are, now[0].Sources...)
			now = now[1:]
		default:
			if !slices.Equal(before[0].Sources, now[0].Sources) {
				were, are = append(were, before[0].Sources...), append(are, now[0].Sources...)
			}
			before, now = before[1:], now[1:]
		}
	}
	s.withDisk.replace(id, were, are, all)
}

// sourcesOf are the disks of a domain of the node; none, if it does not list it.
func (n *node) sourcesOf(uuid string) []model.DiskSource {
	facts := model.NodeFacts{Domains: n.shown}
	if one := facts.Domain(uuid); one != nil {
		return one.Sources
	}
	return nil
}

// replace brings a node's part of the disks up to date: some of its domains had disks and have others now. All are its domains now.
func (w showing) replace(node string, were, are []model.DiskSource, all []model.Domain) {
	for _, source := range are {
		w.add(source.FileName(), node)
	}
	gone := make(map[string]bool)
	for _, source := range were {
		gone[source.FileName()] = true
	}
	for i := 0; i < len(all) && len(gone) > 0; i++ {
		for _, source := range all[i].Sources {
			delete(gone, source.FileName())
		}
	}
	for name := range gone {
		w.remove(name, node)
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

// WithDisk are the IDs of the nodes that list a domain with a disk of a file name, in whatever state and whenever they were heard last.
func (s *Store) WithDisk(name string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.withDisk[name])
}
