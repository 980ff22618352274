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
	told  map[string][]domxml.Binding // that an event has told of
	asked map[string]time.Time        // when those were asked whose answers were taken in last
	heard map[string]time.Time        // when something was heard of them last
	own   map[string]bool             // domains that the agent migrates
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

// Take takes in the jobs that a domain has, which was asked at a time, and gives them with the time when each was first seen. Of two
// answers the one counts that was asked for later, whichever comes first.
func (o *Others) Take(uuid string, jobs []domxml.Binding, asked time.Time) []domxml.Binding {
	o.mu.Lock()
	defer o.mu.Unlock()
	if asked.Before(o.asked[uuid]) {
		return o.known[uuid]
	}
	if o.asked == nil {
		o.asked = map[string]time.Time{}
	}
	o.asked[uuid] = asked
	before := o.known[uuid]
	for i := range jobs {
		jobs[i].Since = asked.UTC().Truncate(time.Second)
		for _, was := range before {
			if was.Kind == jobs[i].Kind && was.What == jobs[i].What && was.Name == jobs[i].Name {
				jobs[i].Since = was.Since
			}
		}
	}
	if len(jobs) == 0 {
		delete(o.known, uuid)
		return nil
	}
	if o.known == nil {
		o.known = map[string][]domxml.Binding{}
	}
	o.known[uuid] = jobs
	return jobs
}

// Tell tells whether a domain has other jobs than when it was told last, whoever has taken them in since.
func (o *Others) Tell(uuid string) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is, was := o.known[uuid], o.told[uuid]
	if len(is) == 0 {
		delete(o.told, uuid)
	} else {
		if o.told == nil {
			o.told = map[string][]domxml.Binding{}
		}
		o.told[uuid] = is
	}
	return !slices.Equal(is, was)
}

// Of are the jobs that a domain had when they were known last.
func (o *Others) Of(uuid string) []domxml.Binding {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[uuid]
}

// heardLasts is for how long a domain is looked at of which something was heard: its job may begin or end in the next moment.
const heardLasts = 5 * time.Second

// Heard takes note that something was heard of a domain.
func (o *Others) Heard(uuid string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heard == nil {
		o.heard = map[string]time.Time{}
	}
	o.heard[uuid] = now
}

// Due are the domains that have a job as far as anybody has been told, were found to have one, or may have one in the next moment.
func (o *Others) Due(now time.Time) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.heard, func(_ string, at time.Time) bool { return now.Sub(at) > heardLasts })
	all := slices.AppendSeq(slices.Collect(maps.Keys(o.known)), maps.Keys(o.told))
	all = slices.AppendSeq(all, maps.Keys(o.heard))
	slices.Sort(all)
	return slices.Compact(all)
}

// Keep forgets the jobs of all domains but these.
func (o *Others) Keep(domains []hypervisor.Domain) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) == 0 {
		return
	}
	present := make(map[string]bool, len(domains))
	for i := range domains {
		present[domains[i].UUID] = true
	}
	gone := func(uuid string, _ []domxml.Binding) bool { return !present[uuid] }
	maps.DeleteFunc(o.known, gone)
	maps.DeleteFunc(o.told, gone)
	maps.DeleteFunc(o.asked, func(uuid string, _ time.Time) bool { return !present[uuid] })
}
