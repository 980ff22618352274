// Package guestnews counts what was heard of each domain. What is known of one holds as long as its version stays what it was.
package guestnews

import (
	"maps"
	"sync"
)

// News counts what was heard of each domain, by UUID. The zero value is ready, and it is safe for concurrent use: who brings news never
// waits for somebody who asks the hypervisor.
type News struct {
	mu   sync.Mutex
	all  uint64 // counts for every domain: connections
	each map[string]uint64
}

// Heard is for news of one domain.
func (n *News) Heard(uuid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.each == nil {
		n.each = map[string]uint64{}
	}
	n.each[uuid]++
}

// Reconnected is for a new connection: events may have been missed.
func (n *News) Reconnected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all++
}

// Keep forgets all domains but these.
func (n *News) Keep(present map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.each, func(uuid string, _ uint64) bool { return !present[uuid] })
}

// Version grows with each news of a domain.
func (n *News) Version(uuid string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all + n.each[uuid]
}
