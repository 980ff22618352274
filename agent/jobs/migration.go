package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"berth/agent/hypervisor"
)

const (
	// jobEvery is how often a running migration is looked at.
	jobEvery = time.Second
	// jobSilence is how long a migration may stay out of sight before following it is given up.
	jobSilence = time.Minute
)

// migration runs one live migration on its source.
type migration struct {
	hypervisor hypervisor.Hypervisor
	uuid       string
	limit      time.Duration        // longest copy; 0: none
	report     func(hypervisor.Job) // gets each progress
	scheduler  Scheduler

	history   history
	begun     time.Time
	cancelled atomic.Bool
	gaveUp    string
}

// cancel asks for the migration to be given up. It may be too late: what became of the guest is seen afterwards.
func (m *migration) cancel() { m.cancelled.Store(true) }

// isCancelled tells whether somebody asked for the end.
func (m *migration) isCancelled() bool { return m.cancelled.Load() }

// whyGivenUp is why the job was aborted here; empty when it was not. It is known once run or attach has returned.
func (m *migration) whyGivenUp() string { return m.gaveUp }

// run migrates, reports and aborts as it must. It returns what the hypervisor returned; that is no verdict.
func (m *migration) run(ctx context.Context, options hypervisor.MigrateOptions) error {
	if m.isCancelled() {
		return hypervisor.ErrAborted
	}
	var err error
	ended := make(chan struct{})
	m.scheduler.Go(func() {
		err = m.hypervisor.Migrate(ctx, m.uuid, options)
		close(ended)
	})
	if over := m.attend(ctx, ended); over != nil {
		return over
	}
	return err
}

// attach follows a job that runs already until it has ended. How it ended is not known, so the error is ErrAmbiguous.
func (m *migration) attach(ctx context.Context) error {
	return m.attend(ctx, nil)
}

// attend polls until ended is closed, which is no error, or, without it, until the job is gone.
func (m *migration) attend(ctx context.Context, ended <-chan struct{}) error {
	if m.begun.IsZero() {
		m.begun = m.scheduler.Now()
	}
	seenAt := m.scheduler.Now()
	for {
		if over, err := m.scheduler.Wait(ctx, ended, jobEvery); over || err != nil {
			return err
		}
		job, err := m.hypervisor.Job(ctx, m.uuid, false)
		switch {
		case errors.Is(err, hypervisor.ErrNotFound), err == nil && !job.Active:
			if ended == nil {
				return fmt.Errorf("%w: the job ended unseen", hypervisor.ErrAmbiguous)
			}
			continue
		case err != nil: // busy or unreachable: the next look may tell more
			if ended == nil && m.scheduler.Now().Sub(seenAt) > jobSilence {
				return fmt.Errorf("%w: the job is out of sight: %w", hypervisor.ErrAmbiguous, err)
			}
			m.endIfDue(ctx, hypervisor.Job{}) // its guest's process may hang in the very copy that is to be ended
			continue
		}
		seenAt = m.scheduler.Now()
		if m.report != nil {
			m.report(job)
		}
		m.endIfDue(ctx, job)
	}
}

// endIfDue ends a running job when it must end. One that nothing is known of has made no progress.
func (m *migration) endIfDue(ctx context.Context, job hypervisor.Job) {
	giveUp, why := m.history.judge(progress{elapsed: m.scheduler.Now().Sub(m.begun), remaining: job.DataRemaining}, m.limit)
	if giveUp && m.gaveUp == "" {
		m.gaveUp = why
	}
	if giveUp || m.isCancelled() {
		// Repeated until the job has ended: an abort may come too early or find libvirt busy.
		_ = m.hypervisor.AbortJob(ctx, m.uuid)
	}
}
