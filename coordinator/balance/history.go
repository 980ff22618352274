package balance

import "time"

// History remembers from pass to pass since when nodes have been over or under a threshold. Only the leader has it, and it
// may be lost: then the time begins anew. The zero History is empty and ready.
type History struct {
	since map[mark]time.Time
}

type mark struct{ node, what string }

// Since is the moment from which on something has held for a node without a break: now, if it has just begun; false if it
// does not hold. Every pass has to call it.
func (h *History) Since(node, what string, holds bool, now time.Time) (time.Time, bool) {
	if !holds {
		delete(h.since, mark{node, what})
		return time.Time{}, false
	}
	if h.since == nil {
		h.since = make(map[mark]time.Time)
	}
	begun, known := h.since[mark{node, what}]
	if !known {
		begun = now
		h.since[mark{node, what}] = begun
	}
	return begun, true
}
