// Package migration runs one live migration on its source.
package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/migration/converge"
	"berth/agent/schedule"
)

const (
	// pollEvery is how often a running job is looked at.
	pollEvery = time.Second
	// silence is how long a job may stay out of sight before following it is given up.
	silence = time.Minute
)

// Plain tells that a target's libvirt is reached without TLS: then its QEMU has no certificate either.
func Plain(targetURI string) bool {
	scheme, _, _ := strings.Cut(targetURI, "://")
	return !strings.HasSuffix(scheme, "+tls")
}

// Runner runs one migration on its source.
type Runner struct {
	Hypervisor hypervisor.Hypervisor
	UUID       string
	Limit      time.Duration        // longest copy; 0: none
	Report     func(hypervisor.Job) // gets each progress
	Scheduler  schedule.Scheduler

	history   converge.History
	begun     time.Time
	cancelled atomic.Bool
	gaveUp    string
}

// Cancel asks for the migration to be given up. It may be too late: what became of the guest is seen afterwards.
func (r *Runner) Cancel() { r.cancelled.Store(true) }

// Cancelled tells whether somebody asked for the end.
func (r *Runner) Cancelled() bool { return r.cancelled.Load() }

// GaveUp is why the runner itself aborted the job; empty when it did not. It is to be asked when Run or Attach is over.
func (r *Runner) GaveUp() string { return r.gaveUp }

// Run migrates, reports and aborts as it must. It returns what the hypervisor returned; that is no verdict.
func (r *Runner) Run(ctx context.Context, options hypervisor.MigrateOptions) error {
	if r.Cancelled() {
		return hypervisor.ErrAborted
	}
	var err error
	ended := make(chan struct{})
	r.Scheduler.Go(func() {
		err = r.Hypervisor.Migrate(ctx, r.UUID, options)
		close(ended)
	})
	if over := r.attend(ctx, ended); over != nil {
		return over
	}
	return err
}

// Attach follows a job that runs already, to its end. How it ended is not told: the error, ErrAmbiguous, says so.
func (r *Runner) Attach(ctx context.Context) error {
	return r.attend(ctx, nil)
}

// attend polls until ended is closed, which is no error, or, without it, until the job is gone.
func (r *Runner) attend(ctx context.Context, ended <-chan struct{}) error {
	if r.begun.IsZero() {
		r.begun = r.Scheduler.Now()
	}
	seenAt := r.Scheduler.Now()
	for {
		if over, err := r.Scheduler.Wait(ctx, ended, pollEvery); over || err != nil {
			return err
		}
		job, err := r.Hypervisor.Job(ctx, r.UUID, false)
		switch {
		case errors.Is(err, hypervisor.ErrNotFound), err == nil && !job.Active:
			if ended == nil {
				return fmt.Errorf("%w: the job ended unseen", hypervisor.ErrAmbiguous)
			}
			continue
		case err != nil: // busy or unreachable: the next look may tell more
			if ended == nil && r.Scheduler.Now().Sub(seenAt) > silence {
				return fmt.Errorf("%w: the job is out of sight: %w", hypervisor.ErrAmbiguous, err)
			}
			r.endIfDue(ctx, hypervisor.Job{}) // its guest's process may hang in the very copy that is to be ended
			continue
		}
		seenAt = r.Scheduler.Now()
		if r.Report != nil {
			r.Report(job)
		}
		r.endIfDue(ctx, job)
	}
}

// endIfDue ends a running job when it must end. One that nothing is known of has made no progress.
func (r *Runner) endIfDue(ctx context.Context, job hypervisor.Job) {
	giveUp, why := r.history.Judge(converge.Progress{Elapsed: r.Scheduler.Now().Sub(r.begun), Remaining: job.DataRemaining}, r.Limit)
	if giveUp && r.gaveUp == "" {
		r.gaveUp = why
	}
	if giveUp || r.Cancelled() {
		// Repeated until the job has ended: an abort may come too early or find libvirt busy.
		_ = r.Hypervisor.AbortJob(ctx, r.UUID)
	}
}
