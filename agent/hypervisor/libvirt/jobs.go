package libvirt

import (
	"context"
	"fmt"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// onJobCompleted hears of jobs that ended well. The event does not carry the type that an answer to a question has.
func (h *migrations) onJobCompleted(_ *libvirtgo.Connect, d *libvirtgo.Domain, event *libvirtgo.DomainEventJobCompleted) {
	stats := event.Info
	stats.Type = libvirtgo.DOMAIN_JOB_COMPLETED
	uuid, err := d.GetUUIDString()
	if err != nil || !isMigration(&stats) || stats.JobSuccessSet && !stats.JobSuccess {
		return
	}
	h.done.Put(uuid, figures(&stats), time.Now())
}

// Job implements hypervisor.Hypervisor.
func (h *migrations) Job(ctx context.Context, uuid string, done bool) (hypervisor.Job, error) {
	if err := h.watch.state(); err != nil {
		return hypervisor.Job{}, err
	}
	if h.departures.Gone(uuid) { // its figures come when libvirtd is done, and a question for them waits as long
		return hypervisor.Job{}, fmt.Errorf("%w: domain %s has left", hypervisor.ErrNotFound, uuid)
	}
	var flags libvirtgo.DomainGetJobStatsFlags
	if done {
		flags = libvirtgo.DOMAIN_JOB_STATS_COMPLETED | libvirtgo.DOMAIN_JOB_STATS_KEEP_COMPLETED
	}
	stats, err := h.jobStats(ctx, uuid, flags)
	// A domain that is here may have left and come back since: what libvirt has of it is newer than what we kept.
	if job, kept := h.done.Get(uuid); done && kept && is(err, libvirtgo.ERR_NO_DOMAIN) {
		return job, nil
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
