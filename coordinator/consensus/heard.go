package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// heard is the last that this member has heard of each other one, and when. It is safe for concurrent use, and its zero value
// is ready.
type heard[T any] struct {
	mu   sync.Mutex
	last map[raft.ServerID]news[T]
}

type news[T any] struct {
	what T
	at   time.Time
}

func (h *heard[T]) put(id raft.ServerID, what T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = make(map[raft.ServerID]news[T])
	}
	h.last[id] = news[T]{what: what, at: time.Now()}
}

func (h *heard[T]) of(id raft.ServerID) (last news[T], known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, known = h.last[id]
	return last, known
}

// forget drops what was heard in another term.
func (h *heard[T]) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.last)
}
