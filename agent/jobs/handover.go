package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/volumes"
)

const (
	// retryEvery is the pause between tries of a resume or discard. The guest stands still meanwhile.
	retryEvery = 100 * time.Millisecond
	// resumeLimit bounds one try, so that there is time for the next.
	resumeLimit = 10 * time.Second
)

// doResume lets the paused copy of a finished migration run. It keeps trying, because no other node can do it.
func doResume(j *job) done {
	var last error
	for deadline := j.now().Add(patience); ; {
		seen := j.look()
		switch {
		case seen.gone():
			err := fmt.Errorf("%w: nothing to resume", hypervisor.ErrNotFound)
			return done{result: failure(j.command, err, seen.message()), obeyFrom: j.command.GetEpoch() + 1}
		case seen.known() && !seen.holds(j.command.GetEpoch()):
			return done{result: doubt(j.command, otherEpoch(j.command, seen), seen.message()), again: true}
		case seen.in(hypervisor.Running):
			return j.resumed(seen)
		case seen.in(hypervisor.Crashed):
			return done{result: failure(j.command, fmt.Errorf("%w: the guest has crashed", hypervisor.ErrInvalidState), seen.message()), again: true}
		case !seen.known():
			last = seen.err
		case seen.domain.JobActive:
			last = fmt.Errorf("%w: its migration has not ended", hypervisor.ErrBusy)
		default:
			ctx, cancel := j.limited(resumeLimit)
			last = j.Hypervisor.Resume(ctx, j.command.GetVmId(), j.command.GetEpoch())
			cancel()
			if seen = j.look(); seen.holds(j.command.GetEpoch()) && seen.in(hypervisor.Running) {
				return j.resumed(seen)
			}
		}
		if !j.now().Before(deadline) || j.sleep(retryEvery) != nil {
			return done{result: doubt(j.command, last, seen.message()), again: true}
		}
	}
}

func (j *job) resumed(seen sight) done {
	answer := success(j.command, seen.message())
	// This node was the target: it has the job's final figures, including the downtime.
	if job, err := j.Hypervisor.Job(j.ctx, j.command.GetVmId(), true); err == nil {
		answer.Migration = figures(job)
	}
	return done{result: answer}
}

// doDiscard destroys the paused leftover of a migration, and the volumes that were made for it. It touches nothing else. Its
// failures are not kept: the same order is sent until the leftover is gone.
func doDiscard(j *job) done {
	for deadline := j.now().Add(patience); ; {
		seen, err := j.destroyPaused()
		switch {
		case err == nil:
			return j.discarded(seen)
		case errors.Is(err, hypervisor.ErrInvalidState):
			return done{result: failure(j.command, err, seen.message()), again: true}
		case !j.now().Before(deadline) || j.sleep(retryEvery) != nil:
			return done{result: doubt(j.command, err, seen.message()), again: true}
		}
	}
}

// destroyPaused tries once to destroy the paused copy of the command's epoch. Without an error the copy is not here; a copy
// of another epoch does not count. The error is hypervisor.ErrInvalidState if it runs or has crashed: then trying again does
// not help.
func (j *job) destroyPaused() (sight, error) {
	seen := j.look()
	switch {
	case seen.gone() && !seen.cleared():
		return seen, fmt.Errorf("%w: it has left, and the hypervisor clears up behind it", hypervisor.ErrBusy)
	case seen.gone(), seen.known() && !seen.holds(j.command.GetEpoch()):
		return seen, nil
	case seen.in(hypervisor.Running):
		return seen, fmt.Errorf("%w: it runs", hypervisor.ErrInvalidState)
	case seen.in(hypervisor.Crashed):
		return seen, fmt.Errorf("%w: it has crashed", hypervisor.ErrInvalidState)
	case !seen.known():
		return seen, seen.err
	case seen.domain.JobActive:
		return seen, fmt.Errorf("%w: its migration has not ended", hypervisor.ErrBusy)
	}
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	err := j.Hypervisor.Destroy(ctx, j.command.GetVmId(), j.command.GetEpoch())
	if seen = j.look(); seen.gone() {
		return seen, nil
	}
	if err == nil {
		err = fmt.Errorf("%w: it was destroyed and is still here", hypervisor.ErrAmbiguous)
	}
	return seen, err
}

// discarded removes the volumes of the leftover, which nobody uses any more.
func (j *job) discarded(seen sight) done {
	if err := volumes.Remove(j.ctx, j.Hypervisor, j.command.GetDiscard().GetVolumes()); err != nil {
		return done{result: doubt(j.command, err, seen.message()), again: true}
	}
	return done{result: success(j.command, seen.message()), obeyFrom: j.command.GetEpoch() + 1}
}

// Discard destroys the paused copy that a migration has left of a VM, and makes this node refuse orders for the VM up to its
// epoch. It tries once. Without a copy of that epoch there is nothing to destroy. The error is hypervisor.ErrInvalidState
// when the copy runs or has crashed; after any other error trying again may help.
func (j *Jobs) Discard(ctx context.Context, vm string, epoch uint64) error {
	return j.inTurn(ctx, vm, epoch, func(one *job) error {
		if _, err := one.destroyPaused(); err != nil {
			return err
		}
		if err := j.journal.refuse(vm, epoch); err != nil {
			return fmt.Errorf("journal it: %w", err)
		}
		j.Logger.Info("no migration's leftover of a VM is here any more", "vm", vm, "up_to_epoch", epoch)
		return nil
	})
}

// EndCrashed removes what is left of a guest that has crashed, and makes this node refuse orders for the VM up to its epoch. The error
// is hypervisor.ErrInvalidState when it has not crashed.
func (j *Jobs) EndCrashed(ctx context.Context, vm string, epoch uint64) error {
	return j.inTurn(ctx, vm, epoch, func(one *job) error {
		seen := one.look()
		switch {
		case seen.gone():
		case !seen.known():
			return seen.err
		case !seen.holds(epoch), !seen.in(hypervisor.Crashed):
			return fmt.Errorf("%w: it has not crashed under epoch %d", hypervisor.ErrInvalidState, epoch)
		default:
			limited, cancel := one.limited(actLimit)
			defer cancel()
			err := j.Hypervisor.Destroy(limited, vm, epoch)
			if seen = one.look(); !seen.gone() {
				return fmt.Errorf("%w: it was destroyed and is still here: %w", hypervisor.ErrAmbiguous, err)
			}
		}
		if err := j.journal.refuse(vm, epoch); err != nil {
			return fmt.Errorf("journal it: %w", err)
		}
		j.Logger.Info("what was left of a crashed guest is removed", "vm", vm, "up_to_epoch", epoch)
		return nil
	})
}
