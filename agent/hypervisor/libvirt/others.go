package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// jobTimeout is how long the question for a domain's job may wait for the guest's process.
const jobTimeout = time.Second

// markJobs fills in JobActive and the jobs among the bindings, except for domains that surely have none. That question waits for the
// guest's process, so each one is bounded, and a domain that does not answer is busy with something: that is what JobActive warns of.
func (h *domains) markJobs(ctx context.Context, domains []hypervisor.Domain, none func(uuid string) bool) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range domains {
		domain := &domains[i]
		if !domain.Managed || domain.State == hypervisor.Shutoff || domain.State != hypervisor.PausedMigration && none(domain.UUID) {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			h.markJobsOf(ctx, domain)
		})
	}
	group.Wait()
}

// markJobsOf does it for one domain. The agent's own migrations are left out.
func (h *domains) markJobsOf(ctx context.Context, domain *hypervisor.Domain) {
	asked := time.Now()
	active, jobs, known := h.migrations.jobsOf(ctx, domain.UUID, domain.Devices)
	domain.JobActive = active
	if known {
		jobs = h.migrations.others.Take(domain.UUID, jobs, asked)
	} else {
		jobs = h.migrations.others.Of(domain.UUID)
	}
	h.migrations.quiet.Set(domain.UUID, known && !active && len(jobs) == 0)
	if domain.Bindings != nil {
		domain.Bindings = append(slices.Clip(domain.Bindings), jobs...) // known, also if there are none
	}
}

// jobsOf tells whether a domain has a migration job, and which others it has, if that is known: a guest that is busy may not answer in
// time.
func (h *migrations) jobsOf(
	ctx context.Context, uuid string, devices []domxml.Device,
) (migration bool, others []domxml.Binding, known bool) {
	stats, err := h.jobStats(ctx, uuid, 0)
	switch {
	case is(err, libvirtgo.ERR_OPERATION_INVALID):
		return true, nil, true // an incoming migration has no figures, and no other job refuses to tell them
	case is(err, libvirtgo.ERR_NO_DOMAIN):
		return false, nil, true
	case err != nil:
		return errors.Is(err, errHung), nil, false
	}
	runs := stats.Type == libvirtgo.DOMAIN_JOB_BOUNDED || stats.Type == libvirtgo.DOMAIN_JOB_UNBOUNDED
	switch word := jobWords[stats.Operation]; {
	case runs && isMigration(stats):
		// Its disks may have jobs too, which belong to it.
		if stats.OperationSet && stats.Operation == libvirtgo.DOMAIN_JOB_OPERATION_MIGRATION_OUT && !h.others.Migrates(uuid) {
			others = []domxml.Binding{{Kind: domxml.JobBinding, What: domxml.MigrationJob}}
		}
		return true, others, true
	case runs && word != "":
		return false, []domxml.Binding{{Kind: domxml.JobBinding, What: word}}, true
	case runs:
		return false, nil, false // it is being started
	}
	others, known = h.blockJobs(ctx, uuid, devices)
	return false, others, known
}

func isMigration(stats *libvirtgo.DomainJobInfo) bool {
	return !stats.OperationSet || stats.Operation == libvirtgo.DOMAIN_JOB_OPERATION_MIGRATION_OUT ||
		stats.Operation == libvirtgo.DOMAIN_JOB_OPERATION_MIGRATION_IN
}

// jobWords are the jobs of a whole domain in libvirt's words.
var jobWords = map[libvirtgo.DomainJobOperationType]string{
	libvirtgo.DOMAIN_JOB_OPERATION_BACKUP:          "backup",
	libvirtgo.DOMAIN_JOB_OPERATION_DUMP:            "dump",
	libvirtgo.DOMAIN_JOB_OPERATION_SAVE:            "save",
	libvirtgo.DOMAIN_JOB_OPERATION_SNAPSHOT:        "snapshot",
	libvirtgo.DOMAIN_JOB_OPERATION_SNAPSHOT_DELETE: "snapshot-delete",
	libvirtgo.DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT: "snapshot-revert",
}

// blockJobWords are the jobs of one disk, likewise.
var blockJobWords = map[libvirtgo.DomainBlockJobType]string{
	libvirtgo.DOMAIN_BLOCK_JOB_TYPE_PULL:          "pull",
	libvirtgo.DOMAIN_BLOCK_JOB_TYPE_COPY:          "copy",
	libvirtgo.DOMAIN_BLOCK_JOB_TYPE_COMMIT:        "commit",
	libvirtgo.DOMAIN_BLOCK_JOB_TYPE_ACTIVE_COMMIT: "commit",
	libvirtgo.DOMAIN_BLOCK_JOB_TYPE_BACKUP:        "backup",
}

// blockJobs asks each disk of a domain for its job. The question is for libvirt alone where there is none.
func (h *migrations) blockJobs(ctx context.Context, uuid string, devices []domxml.Device) (jobs []domxml.Binding, known bool) {
	answer, err := h.atMost(ctx, uuid+" disks", func(d *libvirtgo.Domain) (any, error) {
		var jobs []domxml.Binding
		for _, disk := range devices {
			if disk.Kind != domxml.DiskDevice || disk.Media || len(jobs) == hypervisor.MaxBindings {
				continue
			}
			job, err := d.GetBlockJobInfo(disk.Key, 0)
			if err != nil || job == nil {
				continue
			}
			if word := blockJobWords[job.Type]; word != "" {
				jobs = append(jobs, domxml.Binding{Kind: domxml.BlockJobBinding, What: word, Name: disk.Key})
			}
		}
		return jobs, nil
	}, uuid)
	if err != nil {
		return nil, false
	}
	return answer.([]domxml.Binding), true
}

// jobStats asks for a job's statistics. The error is libvirt's own, or errHung.
func (h *migrations) jobStats(ctx context.Context, uuid string, flags libvirtgo.DomainGetJobStatsFlags) (*libvirtgo.DomainJobInfo, error) {
	answer, err := h.atMost(ctx, fmt.Sprint(uuid, flags), func(d *libvirtgo.Domain) (any, error) { return d.GetJobStats(flags) }, uuid)
	if err != nil {
		return nil, err
	}
	return answer.(*libvirtgo.DomainJobInfo), nil
}

// atMost asks a question about a domain that waits for the guest's process, so there is one of a name at a time. The error is libvirt's
// own, or errHung.
func (h *migrations) atMost(ctx context.Context, name string, question func(*libvirtgo.Domain) (any, error), uuid string) (any, error) {
	type outcome struct {
		answer any
		err    error
	}
	result := h.jobs.DoChan(name, func() (any, error) {
		// No deadline here: who waits has one, and the next who asks joins the same call.
		told, _, err := ask(context.Background(), &h.calls, func(conn *libvirtgo.Connect) (outcome, error) {
			d, err := lookup(conn, uuid)
			if err != nil {
				return outcome{err: err}, nil
			}
			defer free(d)
			answer, err := question(d)
			return outcome{answer, err}, nil
		})
		if err != nil {
			told.err = err
		}
		return told.answer, told.err
	})
	limit := time.NewTimer(jobTimeout)
	defer limit.Stop()
	select {
	case r := <-result:
		return r.Val, r.Err
	case <-limit.C:
		return nil, fmt.Errorf("%w: %w", hypervisor.ErrBusy, errHung)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, ctx.Err())
	}
}
