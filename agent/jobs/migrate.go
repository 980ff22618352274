package jobs

import (
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/migration"
	"berth/agent/telemetry"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// migrate moves the domain and leaves it paused on the target. What became of it is decided by a look at the end.
func (j *Jobs) migrate(command *berthv1.Command, one *job, takenUp bool) done {
	order := command.GetMigrate()
	domain, unknown := j.look(command)
	switch {
	case unknown:
		return done{result: doubt(command, hypervisor.ErrUnavailable, telemetry.Domain(domain))}
	case takenUp && !domain.JobActive && domain.State != hypervisor.Running:
		// An earlier life of this agent began it and it ended unseen: the other node knows more.
		return done{result: doubt(command, errors.New("the agent was away when the migration ended"), telemetry.Domain(domain))}
	case gone(domain):
		err := fmt.Errorf("%w: it does not run here", hypervisor.ErrNotFound)
		return done{result: failure(command, codeOf(err), err, telemetry.Domain(domain))}
	case domain.Epoch != command.GetEpoch():
		err := fmt.Errorf("%w: it runs here under epoch %d, the order is for %d", hypervisor.ErrOtherEpoch, domain.Epoch, command.GetEpoch())
		return done{result: result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, codeOf(err), err, telemetry.Domain(domain))}
	case domain.State != hypervisor.Running:
		err := fmt.Errorf("%w: it is %s (%s)", hypervisor.ErrInvalidState, domain.State, domain.Reason)
		return done{result: result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, codeOf(err), err, telemetry.Domain(domain))}
	}
	runner := &migration.Runner{
		Hypervisor: j.Hypervisor, UUID: command.GetVmId(), Deadline: time.Duration(order.GetDeadlineSeconds() * float64(time.Second)),
		Report: func(job hypervisor.Job) { j.report(command, job) },
	}
	j.mu.Lock()
	one.runner = runner
	if one.cancelled {
		runner.Cancel()
	}
	j.mu.Unlock()

	var err error
	if domain.JobActive {
		err = runner.Attach(j.ctx)
	} else {
		err = j.copyTo(command, runner)
	}
	return j.migrated(command, runner, err)
}

func (j *Jobs) copyTo(command *berthv1.Command, runner *migration.Runner) error {
	order := command.GetMigrate()
	xml, err := j.Hypervisor.XML(j.ctx, command.GetVmId())
	if err != nil {
		return err
	}
	// The epoch of the new holder travels in the document, so that the copy on the target can be told from any other.
	xml, err = domxml.WithIdentity(xml, domxml.Identity{
		UUID: command.GetVmId(), Name: command.GetVmName(),
		Mark: domxml.Mark{Epoch: order.GetTargetEpoch(), Operation: command.GetOperationId(), Node: order.GetTargetNode()},
	})
	if err != nil {
		return err
	}
	return runner.Run(j.ctx, hypervisor.MigrateOptions{
		TargetURI: order.GetTargetUri(), DataAddress: order.GetTargetAddress(), DomainXML: xml, BandwidthBPS: order.GetBandwidthBps(), Paused: true,
	})
}

func (j *Jobs) migrated(command *berthv1.Command, runner *migration.Runner, err error) done {
	var figures *berthv1.MigrationStats
	if job, unread := j.Hypervisor.Job(j.ctx, command.GetVmId(), true); unread == nil {
		figures = stats(job)
	}
	domain, unknown := j.look(command)
	switch {
	case !unknown && gone(domain) && err == nil:
		answer := success(command, telemetry.Domain(domain))
		answer.Migration = figures
		// This node has let go: orders for the epoch that ran here are void from now on.
		return done{result: answer, obeyFrom: command.GetEpoch() + 1}
	case !unknown && domain.State == hypervisor.Running && !domain.JobActive:
		answer := failure(command, codeOf(err), notMigrated(runner, err), telemetry.Domain(domain))
		if runner.Cancelled() {
			answer.Outcome = berthv1.CommandOutcome_COMMAND_OUTCOME_CANCELLED
		}
		return done{result: answer}
	default:
		if err == nil {
			err = hypervisor.ErrAmbiguous
		}
		answer := doubt(command, err, telemetry.Domain(domain))
		answer.Migration = figures
		return done{result: answer}
	}
}

// notMigrated says why the guest stayed, in the words that help most.
func notMigrated(runner *migration.Runner, err error) error {
	switch why := runner.GaveUp(); {
	case why != "":
		return fmt.Errorf("given up: %s", why)
	case runner.Cancelled():
		return errors.New("cancelled")
	case err == nil:
		return errors.New("the migration ended and the guest is still here")
	default:
		return err
	}
}

func (j *Jobs) report(command *berthv1.Command, job hypervisor.Job) {
	select {
	case j.progress <- &berthv1.CommandProgress{OperationId: command.GetOperationId(), Step: command.GetStep(), Stats: stats(job)}:
	default: // the next one comes in a second
	}
}

func stats(job hypervisor.Job) *berthv1.MigrationStats {
	out := &berthv1.MigrationStats{
		ElapsedSeconds: job.Elapsed.Seconds(), DataTotalBytes: job.DataTotal, DataProcessedBytes: job.DataProcessed,
		DataRemainingBytes: job.DataRemaining, MemoryBps: job.MemoryBPS, DirtyRatePages: job.DirtyRate, Iteration: int32(job.Iteration),
	}
	if job.Downtime != nil {
		seconds := job.Downtime.Seconds()
		out.DowntimeSeconds = &seconds
	}
	return out
}
