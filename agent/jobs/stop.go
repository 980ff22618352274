package jobs

import (
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// actLimit bounds one call to the hypervisor that changes a domain.
const actLimit = 60 * time.Second

// doStop asks the guest, waits for its grace time, and powers it off.
func doStop(j *job) done {
	seen := j.firstLook(haste)
	switch {
	case !seen.known() && j.takenUp:
		return done{result: doubt(j.command, seen.err, seen.message())}
	case !seen.known():
		return done{result: refused(j.command, seen.err, seen.message())}
	case seen.gone():
		over := stopped(j.command, seen)
		ended, _ := j.endings.how(j.command.GetVmId(), seen, j.now())
		over.result.Domain.Missing = !ended // also when an agent before this one had begun to stop it: it may have died before it did
		return over
	case !seen.holds(j.command.GetEpoch()):
		return done{result: failure(j.command, otherEpoch(j.command, seen), seen.message())}
	}
	left := seen.in(hypervisor.PausedMigration)
	over := shutOff(j, seen)
	if left && over.result.GetOutcome() == berthv1.CommandOutcome_COMMAND_OUTCOME_DONE {
		over.result.Domain.Missing = true // what somebody's migration has left is ended, and its guest may run where that went
	}
	return over
}

// shutOff asks a guest that is here to shut down, unless that is of no use or not wanted, and powers it off.
func shutOff(j *job, seen sight) done {
	order := j.command.GetStop()
	if !order.GetForce() && !seen.in(hypervisor.Crashed) {
		if seen = j.askToStop(time.Duration(order.GetGraceSeconds() * float64(time.Second))); seen.gone() {
			return stopped(j.command, seen)
		}
	}
	return j.powerOff()
}

// powerOff destroys the domain. It tries for as long as libvirt is away or the domain busy.
func (j *job) powerOff() done {
	for deadline := j.now().Add(patience); ; {
		ctx, cancel := j.limited(actLimit)
		err := j.Hypervisor.Destroy(ctx, j.command.GetVmId(), j.command.GetEpoch())
		cancel()
		if err == nil {
			err = fmt.Errorf("%w: it was powered off and is still here", hypervisor.ErrAmbiguous)
		}
		seen := j.await(deadline.Sub(j.now()), sight.known)
		late := !j.now().Before(deadline) || j.sleep(retryEvery) != nil
		passing := errors.Is(err, hypervisor.ErrUnavailable) || errors.Is(err, hypervisor.ErrBusy) || errors.Is(err, hypervisor.ErrAmbiguous)
		switch {
		case seen.gone():
			return stopped(j.command, seen)
		case !late && passing:
		case !seen.known(), errors.Is(err, hypervisor.ErrAmbiguous):
			return done{result: doubt(j.command, err, seen.message())}
		default:
			return done{result: failure(j.command, err, seen.message())}
		}
	}
}

// askToStop asks the guest to shut down and waits for its grace time.
func (j *job) askToStop(grace time.Duration) sight {
	ctx, cancel := j.limited(actLimit)
	err := j.Hypervisor.Shutdown(ctx, j.command.GetVmId())
	cancel()
	if err != nil {
		// If a guest cannot be asked, its grace time counts all the same: its owner may be shutting it down from inside.
		j.Logger.Warn("the guest could not be asked to shut down", "vm", j.command.GetVmName(), "error", err)
	}
	return j.await(grace, sight.gone)
}

func stopped(command *berthv1.Command, seen sight) done {
	return done{result: success(command, seen.message()), obeyFrom: command.GetEpoch() + 1}
}

func otherEpoch(command *berthv1.Command, seen sight) error {
	return fmt.Errorf("%w: it is %s here under epoch %d, the order is for %d",
		hypervisor.ErrOtherEpoch, seen.domain.State, seen.domain.Epoch, command.GetEpoch())
}

func otherState(seen sight) error {
	return fmt.Errorf("%w: it is %s (%s)", hypervisor.ErrInvalidState, seen.domain.State, seen.domain.Reason)
}

// isHere says why the guest of an order cannot be asked for anything: it is not seen, or not here under the epoch of the order.
func isHere(command *berthv1.Command, seen sight) error {
	switch {
	case !seen.known():
		return seen.err
	case seen.gone():
		return fmt.Errorf("%w: it does not run here", hypervisor.ErrNotFound)
	case !seen.holds(command.GetEpoch()):
		return otherEpoch(command, seen)
	}
	return nil
}
