package domainjobs

import (
	"maps"
	"sync"
	"time"

	"berth/agent/hypervisor"
)

// Completed keeps the figures of migrations that left this node. libvirt tells them once, in an event on the source: the domain is gone by
// the time anybody could ask. The zero value is ready.
type Completed struct {
	mu   sync.Mutex
	jobs map[string]finished
}

type finished struct {
	job hypervisor.Job
	at  time.Time
}

// keepFinished is how long the figures may still be asked for.
const keepFinished = time.Hour

// Put keeps the figures of a domain that has left.
func (c *Completed) Put(uuid string, job hypervisor.Job, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil {
		c.jobs = map[string]finished{}
	}
	maps.DeleteFunc(c.jobs, func(_ string, f finished) bool { return now.Sub(f.at) > keepFinished })
	c.jobs[uuid] = finished{job, now}
}

// Drop forgets those of a domain that is about to leave again.
func (c *Completed) Drop(uuid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, uuid)
}

// Get finds the figures of a domain.
func (c *Completed) Get(uuid string) (job hypervisor.Job, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, found := c.jobs[uuid]
	return f.job, found
}
