package libvirt

import (
	"context"
	"fmt"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// completed keeps the figures of migrations that left this node. libvirt tells them once, in an event on the source: the
// domain is gone by the time anybody could ask.
type completed struct {
	mu   sync.Mutex
	jobs map[string]finished
}

type finished struct {
	job hypervisor.Job
	at  time.Time
}

// keepFinished is how long the figures may still be asked for.
const keepFinished = time.Hour

func (c *completed) put(uuid string, job hypervisor.Job, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil {
		c.jobs = map[string]finished{}
	}
	for old, f := range c.jobs {
		if now.Sub(f.at) > keepFinished {
			delete(c.jobs, old)
		}
	}
	c.jobs[uuid] = finished{job, now}
}

func (c *completed) drop(uuid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, uuid)
}

func (c *completed) get(uuid string) (finished, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, found := c.jobs[uuid]
	return f, found
}

// onJobCompleted hears of jobs that ended well. The event does not carry the type that an answer to a question has.
func (h *migrations) onJobCompleted(_ *libvirtgo.Connect, d *libvirtgo.Domain, event *libvirtgo.DomainEventJobCompleted) {
	stats := event.Info
	stats.Type = libvirtgo.DOMAIN_JOB_COMPLETED
	uuid, err := d.GetUUIDString()
	if err != nil || !isMigration(&stats) || stats.JobSuccessSet && !stats.JobSuccess {
		return
	}
	h.done.put(uuid, figures(&stats), time.Now())
}

// Job implements hypervisor.Hypervisor.
func (h *migrations) Job(ctx context.Context, uuid string, done bool) (hypervisor.Job, error) {
	if err := h.watch.state(); err != nil {
		return hypervisor.Job{}, err
	}
	if h.departures.left(uuid) { // its figures come when libvirtd is done, and a question for them waits as long
		return hypervisor.Job{}, fmt.Errorf("%w: domain %s has left", hypervisor.ErrNotFound, uuid)
	}
	var flags libvirtgo.DomainGetJobStatsFlags
	if done {
		flags = libvirtgo.DOMAIN_JOB_STATS_COMPLETED | libvirtgo.DOMAIN_JOB_STATS_KEEP_COMPLETED
	}
	stats, err := h.jobStats(ctx, uuid, flags)
	// A domain that is here may have left and come back since: what libvirt has of it is newer than what we kept.
	if f, kept := h.done.get(uuid); done && kept && is(err, libvirtgo.ERR_NO_DOMAIN) {
		return f.job, nil
	}
	switch {
	case is(err, libvirtgo.ERR_OPERATION_INVALID) && !done:
		return hypervisor.Job{Active: true}, nil // incoming: there are no figures on this side
	case err != nil:
		return hypervisor.Job{}, fmt.Errorf("ask for the job of domain %s: %w", uuid, explain(err))
	case done && (stats.Type != libvirtgo.DOMAIN_JOB_COMPLETED || !isMigration(stats)):
		return hypervisor.Job{}, fmt.Errorf("%w: domain %s has no completed migration", hypervisor.ErrNotFound, uuid)
	}
	job := figures(stats)
	job.Active = isMigration(stats) && (stats.Type == libvirtgo.DOMAIN_JOB_BOUNDED || stats.Type == libvirtgo.DOMAIN_JOB_UNBOUNDED)
	return job, nil
}

// figures translates libvirt's statistics of a job.
func figures(stats *libvirtgo.DomainJobInfo) hypervisor.Job {
	job := hypervisor.Job{
		Elapsed:       time.Duration(stats.TimeElapsed) * time.Millisecond,
		DataTotal:     int64(stats.DataTotal),
		DataProcessed: int64(stats.DataProcessed),
		DataRemaining: int64(stats.DataRemaining),
		DiskTotal:     int64(stats.DiskTotal),
		DiskProcessed: int64(stats.DiskProcessed),
		DiskRemaining: int64(stats.DiskRemaining),
		MemoryBPS:     int64(stats.MemBps),
		DirtyRate:     int64(stats.MemDirtyRate),
		Iteration:     int(stats.MemIteration),
	}
	if stats.DowntimeSet && stats.Type == libvirtgo.DOMAIN_JOB_COMPLETED {
		downtime := time.Duration(stats.Downtime) * time.Millisecond // while it runs this is only an expectation
		job.Downtime = &downtime
	}
	return job
}
