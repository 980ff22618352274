// Package domainjobs keeps what was found out about the jobs of domains: which surely have none, and which have one that somebody else has
// begun. To ask all domains with every listing would take a lock of each.
package domainjobs

import (
	"maps"
	"slices"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Quiet are the domains that were asked for a job and had none lately, with nothing heard of them since. The others may have one. The zero
// value is ready.
type Quiet struct {
	mu    sync.Mutex
	known map[string]time.Time // when it was asked
}

// quietLasts is how long an answer counts: a job that begins while its domain is asked may be heard of before it can be seen.
const quietLasts = 30 * time.Second

// Set takes an answer in.
func (q *Quiet) Set(uuid string, is bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !is {
		delete(q.known, uuid)
		return
	}
	if q.known == nil {
		q.known = map[string]time.Time{}
	}
	q.known[uuid] = time.Now()
}

// Reset is for a new connection: anything may have happened.
func (q *Quiet) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known = nil
}

// Is tells whether a domain surely has no job.
func (q *Quiet) Is(uuid string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, known := q.known[uuid]
	return known && time.Since(at) < quietLasts
}

// Others are the jobs of domains that this agent has not begun, by UUID: backups, copies and commits of disks, migrations by other
// programs. The zero value is ready.
type Others struct {
	mu    sync.Mutex
	known map[string][]domxml.Binding
	own   map[string]bool // domains that the agent migrates
}

// Migrating takes note of a migration of the agent's own, until the end is called.
func (o *Others) Migrating(uuid string) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.own == nil {
		o.own = map[string]bool{}
	}
	o.own[uuid] = true
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.own, uuid)
	}
}

// Migrates tells whether the agent migrates a domain.
func (o *Others) Migrates(uuid string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own[uuid]
}

// Take takes in the jobs that a domain has now, and gives them with the time when each was first seen.
func (o *Others) Take(uuid string, jobs []domxml.Binding, now time.Time) (is []domxml.Binding, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.known[uuid]
	for i := range jobs {
		jobs[i].Since = now.UTC().Truncate(time.Second)
		for _, was := range before {
			if was.Kind == jobs[i].Kind && was.What == jobs[i].What && was.Name == jobs[i].Name {
				jobs[i].Since = was.Since
			}
		}
	}
	if len(jobs) == 0 {
		delete(o.known, uuid)
		return nil, len(before) > 0
	}
	if o.known == nil {
		o.known = map[string][]domxml.Binding{}
	}
	o.known[uuid] = jobs
	return jobs, !slices.Equal(before, jobs)
}

// Of are the jobs that a domain had when they were known last.
func (o *Others) Of(uuid string) []domxml.Binding {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[uuid]
}

// Keep forgets the jobs of all domains but these.
func (o *Others) Keep(domains []hypervisor.Domain) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) == 0 {
		return
	}
	present := make(map[string]bool, len(domains))
	for i := range domains {
		present[domains[i].UUID] = true
	}
	maps.DeleteFunc(o.known, func(uuid string, _ []domxml.Binding) bool { return !present[uuid] })
}
