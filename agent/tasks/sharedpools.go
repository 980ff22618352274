package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/config"
)

// SharedPool is what this node has seen last of a storage pool that is called shared, when another node held a lock there.
type SharedPool struct {
	At    time.Time `json:"at"`
	Found bool      `json:"found"` // it sees what the other node has made there
	Held  bool      `json:"held"`  // and the lock on it
}

// SharedPools keeps what was seen of pools that are called shared, in a file: the node itself is told of no other place where that is
// known, and its doctor says it without asking anybody. It is safe for concurrent use by one process.
type SharedPools struct {
	mu   sync.Mutex
	path string
}

// NewSharedPools keeps them in this file. It need not exist.
func NewSharedPools(path string) *SharedPools { return &SharedPools{path: path} }

// Read is what was seen last, by libvirt's names of the pools.
func (s *SharedPools) Read() (map[string]SharedPool, error) {
	pools := map[string]SharedPool{}
	text, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return pools, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &pools); err != nil {
		return nil, fmt.Errorf("read %s: %w; remove it: it is written anew within the hour", s.path, err)
	}
	return pools, nil
}

// saw keeps what a look for another node's lock has come to. A look that has failed for another reason says nothing.
func (s *SharedPools) saw(pool string, held bool, failure error, now time.Time) error {
	missing := errors.Is(failure, hypervisor.ErrNoVolume)
	if s == nil || failure != nil && !missing {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pools, err := s.Read()
	if err != nil {
		pools = map[string]SharedPool{} // it is of no use to anybody
	}
	pools[pool] = SharedPool{At: now, Found: !missing, Held: held}
	text, err := json.Marshal(pools)
	if err != nil {
		return err
	}
	return config.WriteFile(s.path, append(text, '\n'), 0o644)
}
