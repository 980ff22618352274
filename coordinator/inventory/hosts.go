package inventory

import (
	"slices"
	"strings"
)

// hosts are the nodes by the host UUID that their libvirt told last, in lower case. Where all is well each has its own.
type hosts struct {
	by    showing
	twice map[string]bool // those that more than one node has
}

func newHosts() hosts { return hosts{make(showing), make(map[string]bool)} }

// move takes in that a node had one and has another; empty: none.
func (h *hosts) move(node, had, has string) {
	if had == has {
		return
	}
	if had != "" {
		h.by.remove(had, node)
		h.judge(had)
	}
	if has != "" {
		h.by.add(has, node)
		h.judge(has)
	}
}

func (h *hosts) judge(uuid string) {
	if len(h.by[uuid]) > 1 {
		h.twice[uuid] = true
	} else {
		delete(h.twice, uuid)
	}
}

// tell takes in the host UUID of a node's libvirt. The caller holds the lock.
func (h *hosts) tell(id string, n *node, uuid string) {
	uuid = strings.ToLower(uuid)
	h.move(id, n.host, uuid)
	n.host = uuid
}

// SameHosts are the host UUIDs that more than one node has told last, with the IDs of those nodes, whether they are members or not.
func (s *Store) SameHosts() map[string][]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	same := make(map[string][]string, len(s.hosts.twice))
	for uuid := range s.hosts.twice {
		same[uuid] = slices.Clone(s.hosts.by[uuid])
	}
	return same
}
