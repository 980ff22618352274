package jobs

import (
	"errors"
	"fmt"

	"berth/agent/hypervisor"
)

// doPause has the guest stand still. Repeating it is harmless: one that stands still already is done. Nothing of it is kept but that it is
// done, so an order that came at a bad moment is tried again.
func doPause(j *job) done {
	seen := j.firstLook(haste)
	if err := j.stands(seen); err != nil {
		return j.notStood(seen, err)
	}
	if seen.in(hypervisor.Paused) {
		if seen.domain.Reason == hypervisor.ReasonIOError {
			err := fmt.Errorf("%w: a disk of it has failed or found no room, so it stands still already", hypervisor.ErrInvalidState)
			return j.notStood(seen, err)
		}
		return done{result: success(j.command, seen.message())}
	}
	if !seen.in(hypervisor.Running) {
		return j.notStood(seen, otherState(seen))
	}
	ctx, cancel := j.limited(actLimit)
	err := j.Hypervisor.Suspend(ctx, j.command.GetVmId(), j.command.GetEpoch())
	cancel()
	return j.stood(hypervisor.Paused, err)
}

// doUnpause lets a guest run that stands still. Repeating it is harmless: one that runs is done.
func doUnpause(j *job) done {
	seen := j.firstLook(haste)
	if err := j.stands(seen); err != nil {
		return j.notStood(seen, err)
	}
	switch {
	case seen.in(hypervisor.Running):
		return done{result: success(j.command, seen.message())}
	case !seen.in(hypervisor.Paused):
		return j.notStood(seen, otherState(seen))
	}
	ctx, cancel := j.limited(actLimit)
	err := j.Hypervisor.Resume(ctx, j.command.GetVmId(), j.command.GetEpoch())
	cancel()
	return j.stood(hypervisor.Running, err)
}

// stands says why the guest can neither be paused nor let run. What a migration has paused is the migration's: the other node may run it.
func (j *job) stands(seen sight) error {
	if err := isHere(j.command, seen); err != nil {
		return err
	}
	switch {
	case seen.domain.JobActive:
		return fmt.Errorf("%w: a job of it runs", hypervisor.ErrBusy)
	case seen.in(hypervisor.PausedMigration):
		return fmt.Errorf("%w: a migration has paused it", hypervisor.ErrInvalidState)
	}
	return nil
}

// stood answers by what a look shows now.
func (j *job) stood(wanted hypervisor.State, err error) done {
	seen := j.await(haste, sight.known)
	switch {
	case !seen.known():
		return done{result: doubt(j.command, seen.err, seen.message()), again: true, begun: true}
	case seen.gone():
		return j.notStood(seen, fmt.Errorf("%w: its guest has ended meanwhile", hypervisor.ErrNotFound))
	case !seen.holds(j.command.GetEpoch()):
		return j.notStood(seen, otherEpoch(j.command, seen))
	case seen.in(wanted):
		return done{result: success(j.command, seen.message())}
	case errors.Is(err, hypervisor.ErrAmbiguous):
		return done{result: doubt(j.command, err, seen.message()), again: true, begun: true} // it may still take effect
	case err != nil:
		return j.notStood(seen, err)
	}
	return j.notStood(seen, fmt.Errorf("%w: it is %s (%s) again", hypervisor.ErrInvalidState, seen.domain.State, seen.domain.Reason))
}

// notStood is an order that changes nothing. What is not known is asked again.
func (j *job) notStood(seen sight, err error) done {
	if !seen.known() {
		return done{result: doubt(j.command, err, seen.message()), again: true}
	}
	return done{result: refused(j.command, err, seen.message())}
}
