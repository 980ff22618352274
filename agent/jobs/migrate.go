package jobs

import (
	"errors"
	"fmt"
	"time"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/shared/destination"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// handOverLimit is how long the last phase may take before what it shows counts: both copies stand still then.
const handOverLimit = 10 * time.Second

// doMigrate moves the domain and leaves it paused on the target. What became of it is decided by a look at the end.
func doMigrate(j *job) done {
	seen := j.firstLook(haste)
	switch {
	case !seen.known() && j.takenUp:
		return done{result: doubt(j.command, seen.err, seen.message())}
	case !seen.known():
		return done{result: refused(j.command, seen.err, seen.message())}
	case j.takenUp && !seen.domain.JobActive && !seen.in(hypervisor.Running):
		// An earlier life of this agent began it and it ended unseen: the other node knows more.
		return done{result: doubt(j.command, errors.New("the agent was away when the migration ended"), seen.message())}
	case seen.gone():
		return done{result: failure(j.command, fmt.Errorf("%w: it does not run here", hypervisor.ErrNotFound), seen.message())}
	case !seen.holds(j.command.GetEpoch()):
		return done{result: refused(j.command, otherEpoch(j.command, seen), seen.message())}
	case !seen.in(hypervisor.Running) && !seen.domain.JobActive:
		// The target would let it run, and somebody wants it paused.
		err := otherState(seen)
		return done{result: refused(j.command, err, seen.message())}
	}
	if err := writes(j, seen); err != nil {
		return done{result: refused(j.command, err, seen.message())}
	}
	going := j.follow(seen.domain)
	var err error
	if seen.domain.JobActive {
		err = going.attach(j.ctx)
	} else {
		err = j.copyTo(going)
	}
	for {
		seen = j.outcome()
		if !seen.known() || seen.gone() || !seen.domain.JobActive || j.ctx.Err() != nil {
			return migrated(j.command, going, seen, err, j.finalFigures(seen))
		}
		// The call came back and the job goes on: the daemon's answer was lost, not the move.
		err = going.attach(j.ctx)
	}
}

// writes has a guest write again that a snapshot may have left frozen, before it moves: only this node knows of that, so on the target
// nobody would.
func writes(j *job, seen sight) error {
	epoch, err := j.journal.frozenIn(j.command.GetVmId())
	if err == nil && epoch == j.command.GetEpoch() && !seen.domain.JobActive {
		err = j.thawGuest(j.command.GetVmId(), epoch)
	}
	if err != nil {
		return fmt.Errorf("its guest may stand still since a snapshot, and nobody would have it write again on the target; "+
			"`virsh domfsthaw %s` does: %w", j.command.GetVmName(), err)
	}
	return nil
}

// follow makes the migration of the job, which can be cancelled from now on.
func (j *job) follow(domain hypervisor.Domain) *migration {
	deadline := time.Duration(j.command.GetMigrate().GetDeadlineSeconds() * float64(time.Second))
	if deadline <= 0 {
		size := domain.MemoryBytes
		for _, volume := range j.command.GetMigrate().GetFrom() {
			size += volume.GetCapacityBytes()
		}
		deadline = deadlineOf(size)
	}
	going := &migration{
		hypervisor: j.Hypervisor, uuid: j.command.GetVmId(), limit: deadline,
		scheduler: j.Scheduler, report: j.report,
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.migration = going
	if j.cancelled {
		going.cancel()
	}
	return going
}

func (j *job) copyTo(going *migration) error {
	order := j.command.GetMigrate()
	if err := destination.Check(order.GetTargetUri(), order.GetTargetAddress()); err != nil {
		return fmt.Errorf("%w: %w", errorcode.ErrInvalid, err)
	}
	xml, err := j.Hypervisor.XML(j.ctx, j.command.GetVmId())
	if err != nil {
		return err
	}
	// The epoch of the new holder travels in the document, so that the copy on the target can be told from any other.
	xml, err = domxml.WithIdentity(xml, domxml.Identity{
		UUID: j.command.GetVmId(), Name: j.command.GetVmName(),
		Mark: domxml.Mark{Epoch: order.GetTargetEpoch(), Operation: j.command.GetOperationId(), Node: order.GetTargetNode()},
	})
	if err != nil {
		return err
	}
	options := hypervisor.MigrateOptions{
		TargetURI: order.GetTargetUri(), DataAddress: order.GetTargetAddress(), DomainXML: xml,
		BandwidthBPS: order.GetBandwidthBps(), Paused: true,
	}
	if err := moveDisks(j.ctx, j.Hypervisor, order, &options); err != nil {
		return err
	}
	return going.run(j.ctx, options)
}

// outcome is what is here after the job: it waits for a hypervisor that is away and for a hand-over that is under way.
func (j *job) outcome() sight {
	seen := j.await(patience, sight.known)
	if seen.in(hypervisor.PausedMigration) {
		seen = j.await(handOverLimit, func(s sight) bool { return s.known() && s.domain.State != hypervisor.PausedMigration })
	}
	return seen
}

// finalFigures are those of the completed job, if the guest has left.
func (j *job) finalFigures(seen sight) *berthv1.MigrationStats {
	if !seen.gone() {
		return nil
	}
	job, err := j.Hypervisor.Job(j.ctx, j.command.GetVmId(), true)
	if err != nil {
		return nil
	}
	return figures(job)
}

func migrated(command *berthv1.Command, going *migration, seen sight, err error, final *berthv1.MigrationStats) done {
	switch {
	case seen.gone() && err == nil:
		answer := success(command, seen.message())
		answer.Migration = final
		// This node has let go: orders for the epoch that ran here are void from now on.
		return done{result: answer, obeyFrom: command.GetEpoch() + 1}
	case seen.in(hypervisor.Running) && !seen.domain.JobActive:
		answer := failure(command, notMigrated(going, err), seen.message())
		if going.isCancelled() {
			answer.Outcome = berthv1.CommandOutcome_COMMAND_OUTCOME_CANCELLED
		}
		return done{result: answer}
	default:
		if err == nil {
			err = hypervisor.ErrAmbiguous
		}
		answer := doubt(command, err, seen.message())
		answer.Migration = final
		return done{result: answer}
	}
}

// notMigrated says why the guest stayed, in the words that help most.
func notMigrated(going *migration, err error) error {
	switch why := going.whyGivenUp(); {
	case why != "":
		return fmt.Errorf("%w: %s", errorcode.ErrGivenUp, why)
	case going.isCancelled():
		return fmt.Errorf("%w: cancelled", hypervisor.ErrAborted)
	case err == nil:
		return errors.New("the migration ended and the guest is still here")
	case errors.Is(err, hypervisor.ErrAmbiguous):
		return fmt.Errorf("%w: libvirtd or the agent was away meanwhile, and the guest stayed", hypervisor.ErrAborted)
	default:
		return err
	}
}

func (j *job) report(job hypervisor.Job) {
	select {
	case j.progress <- &berthv1.CommandProgress{OperationId: j.command.GetOperationId(), Step: j.command.GetStep(), Stats: figures(job)}:
	default: // the next one comes in a second
	}
}

func figures(job hypervisor.Job) *berthv1.MigrationStats {
	out := &berthv1.MigrationStats{
		ElapsedSeconds: job.Elapsed.Seconds(), DataTotalBytes: job.DataTotal, DataProcessedBytes: job.DataProcessed,
		DataRemainingBytes: job.DataRemaining, MemoryBps: job.MemoryBPS, DirtyRatePages: job.DirtyRate, Iteration: int32(job.Iteration),
		DiskTotalBytes: job.DiskTotal, DiskProcessedBytes: job.DiskProcessed, DiskRemainingBytes: job.DiskRemaining,
	}
	if job.Downtime != nil {
		seconds := job.Downtime.Seconds()
		out.DowntimeSeconds = &seconds
	}
	return out
}
