package migration

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"berth/agent/hypervisor"
)

// pollEvery is how often a running job is looked at.
const pollEvery = time.Second

// Runner runs one migration on its source.
type Runner struct {
	Hypervisor hypervisor.Hypervisor
	UUID       string
	Deadline   time.Duration        // longest copy; 0: no limit
	Report     func(hypervisor.Job) // gets each progress

	cancelled atomic.Bool
	gaveUp    atomic.Pointer[string]
}

// Cancel asks for the migration to be given up. It may be too late: what became of the guest is seen afterwards.
func (r *Runner) Cancel() { r.cancelled.Store(true) }

// Cancelled tells whether somebody asked for the end.
func (r *Runner) Cancelled() bool { return r.cancelled.Load() }

// GaveUp is why the runner itself aborted the job; empty when it did not.
func (r *Runner) GaveUp() string {
	if why := r.gaveUp.Load(); why != nil {
		return *why
	}
	return ""
}

// Run migrates, reports and aborts as it must. It returns what the hypervisor returned; that is no verdict.
func (r *Runner) Run(ctx context.Context, options hypervisor.MigrateOptions) error {
	ended := make(chan error, 1)
	go func() { ended <- r.Hypervisor.Migrate(ctx, r.UUID, options) }()
	return r.attend(ctx, ended)
}

// Attach follows a job that an earlier life of the agent began, to its end.
func (r *Runner) Attach(ctx context.Context) error {
	return r.attend(ctx, nil)
}

// attend polls until ended delivers, or, without it, until the job is gone.
func (r *Runner) attend(ctx context.Context, ended <-chan error) error {
	var converge Converge
	begun := time.Now()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case <-ticker.C:
		}
		job, err := r.Hypervisor.Job(ctx, r.UUID, false)
		switch {
		case errors.Is(err, hypervisor.ErrNotFound), err == nil && !job.Active:
			if ended == nil {
				return nil
			}
			continue
		case err != nil:
			continue // busy or unreachable: the next look may tell more
		}
		if r.Report != nil {
			r.Report(job)
		}
		giveUp, why := converge.Judge(Progress{Elapsed: time.Since(begun), Remaining: job.DataRemaining}, r.Deadline)
		if giveUp {
			r.gaveUp.CompareAndSwap(nil, &why)
		}
		if giveUp || r.Cancelled() {
			// Repeated until the job has ended: an abort may come too early or find libvirt busy.
			_ = r.Hypervisor.AbortJob(ctx, r.UUID)
		}
	}
}
