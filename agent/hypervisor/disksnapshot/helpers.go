package disksnapshot

import "sync"

// Helpers are the domains of snapshots that this process works with. The zero value is ready.
type Helpers struct {
	mu   sync.Mutex
	used map[string]int // by UUID: how many calls, also those that nobody waits for any more
}

// Use notes that a call works with a helper, until it is released.
func (h *Helpers) Use(uuid string) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used == nil {
		h.used = map[string]int{}
	}
	h.used[uuid]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.used[uuid]--; h.used[uuid] == 0 {
			delete(h.used, uuid)
		}
	}
}

// Clean does it to a helper that no call works with. None begins to meanwhile. It reports false if one does.
func (h *Helpers) Clean(uuid string, do func() error) (done bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used[uuid] > 0 {
		return false, nil
	}
	return true, do()
}
