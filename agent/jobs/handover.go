package jobs

import (
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/volumes"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	// retryEvery is the pause between tries of a resume or discard. The guest stands still meanwhile.
	retryEvery = 100 * time.Millisecond
	// resumeLimit bounds one try, so that there is time for the next.
	resumeLimit = 10 * time.Second
)

// resume lets the paused copy of a finished migration run. It tries for as long as it may help: nobody else can.
func (j *Jobs) resume(command *berthv1.Command) done {
	var last error
	for deadline := j.now().Add(patience); ; {
		seen := j.look(command)
		switch {
		case seen.gone():
			err := fmt.Errorf("%w: nothing to resume", hypervisor.ErrNotFound)
			return done{result: failure(command, err, seen.message()), obeyFrom: command.GetEpoch() + 1}
		case seen.known() && !seen.holds(command.GetEpoch()):
			return done{result: doubt(command, otherEpoch(command, seen), seen.message()), again: true}
		case seen.in(hypervisor.Running):
			return j.resumed(command, seen)
		case seen.in(hypervisor.Crashed):
			return done{result: failure(command, fmt.Errorf("%w: the guest has crashed", hypervisor.ErrInvalidState), seen.message()), again: true}
		case !seen.known():
			last = seen.err
		case seen.domain.JobActive:
			last = fmt.Errorf("%w: its migration has not ended", hypervisor.ErrBusy)
		default:
			ctx, cancel := j.limited(resumeLimit)
			last = j.Hypervisor.Resume(ctx, command.GetVmId(), command.GetEpoch())
			cancel()
			if seen = j.look(command); seen.holds(command.GetEpoch()) && seen.in(hypervisor.Running) {
				return j.resumed(command, seen)
			}
		}
		if !j.now().Before(deadline) || j.sleep(retryEvery) != nil {
			return done{result: doubt(command, last, seen.message()), again: true}
		}
	}
}

func (j *Jobs) resumed(command *berthv1.Command, seen sight) done {
	answer := success(command, seen.message())
	// This node was the target: the job's final figures, the downtime among them, are here.
	if job, err := j.Hypervisor.Job(j.ctx, command.GetVmId(), true); err == nil {
		answer.Migration = figures(job)
	}
	return done{result: answer}
}

// discard destroys the paused leftover of a migration, with the volumes that were made for it, and nothing else. Its failures are not kept: the same order is
// sent until the leftover is gone.
func (j *Jobs) discard(command *berthv1.Command) done {
	var last error
	for deadline := j.now().Add(patience); ; {
		seen := j.look(command)
		switch {
		case seen.gone(), seen.known() && !seen.holds(command.GetEpoch()):
			return j.discarded(command, seen) // another epoch is not the leftover, and the leftover is not here
		case seen.in(hypervisor.Running):
			return done{result: failure(command, fmt.Errorf("%w: it runs", hypervisor.ErrInvalidState), seen.message()), again: true}
		case seen.in(hypervisor.Crashed):
			return done{result: failure(command, fmt.Errorf("%w: it has crashed", hypervisor.ErrInvalidState), seen.message()), again: true}
		case !seen.known():
			last = seen.err
		case seen.domain.JobActive:
			last = fmt.Errorf("%w: its migration has not ended", hypervisor.ErrBusy)
		default:
			ctx, cancel := j.limited(actLimit)
			last = j.Hypervisor.Destroy(ctx, command.GetVmId(), command.GetEpoch())
			cancel()
			if last == nil {
				last = errors.New("it was destroyed and is still here")
			}
			if seen = j.look(command); seen.gone() {
				return j.discarded(command, seen)
			}
		}
		if !j.now().Before(deadline) || j.sleep(retryEvery) != nil {
			return done{result: doubt(command, last, seen.message()), again: true}
		}
	}
}

// discarded removes the volumes that were made for the leftover, now that nobody uses them.
func (j *Jobs) discarded(command *berthv1.Command, seen sight) done {
	if err := volumes.Remove(j.ctx, j.Hypervisor, command.GetDiscard().GetVolumes()); err != nil {
		return done{result: doubt(command, err, seen.message()), again: true}
	}
	return done{result: success(command, seen.message()), obeyFrom: command.GetEpoch() + 1}
}
