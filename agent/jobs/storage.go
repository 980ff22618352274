package jobs

import (
	"errors"
	"fmt"

	"berth/agent/hypervisor"
	"berth/agent/volumes"
	berthv1 "berth/shared/gen/berth/v1"
)

// provide makes the volumes of a start. If that fails, it returns how the start ends.
func (j *job) provide() (made bool, ended done) {
	order := j.command.GetStart()
	if len(order.GetVolumes()) == 0 {
		return true, done{}
	}
	if j.takenUp {
		// What an earlier life asked for may still take effect: its volumes must not be replaced.
		seen, sure := j.awaitAbsence()
		switch {
		case seen.holds(j.command.GetEpoch()):
			return false, j.started(seen)
		case !sure:
			return false, j.startUnknown(errors.New("a start of the VM may still take effect"))
		}
	}
	err := volumes.Make(j.ctx, j.Hypervisor, order.GetVolumes(), seedOf(j.command, order.GetSpec()))
	if err == nil {
		return true, done{}
	}
	if j.takenUp {
		err = volumes.Both(err, volumes.Remove(j.ctx, j.Hypervisor, order.GetVolumes()))
	}
	return false, j.unlessLeft(notStarted(j.command, err, absent(j.command)), err)
}

// cleared removes the volumes of a failed start before the failure is answered, because its receiver relies on that.
func (j *job) cleared(d done) done {
	if d.result.GetOutcome() != berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED || len(j.command.GetStart().GetVolumes()) == 0 {
		return d
	}
	err := volumes.Remove(j.ctx, j.Hypervisor, j.command.GetStart().GetVolumes())
	return j.unlessLeft(d, volumes.Both(errors.New(d.result.GetError()), err))
}

// unlessLeft turns a failed start into one in doubt if some of its volumes may be left.
func (j *job) unlessLeft(d done, err error) done {
	if !errors.Is(err, volumes.ErrLeft) {
		return d
	}
	unknown := j.startUnknown(err)
	unknown.obeyFrom, unknown.result.Code, unknown.result.ErrorCode = d.obeyFrom, d.result.GetCode(), d.result.GetErrorCode()
	return unknown
}

// startUnknown answers that what is here is not known, and makes later looks at the VM wait until it is.
func (j *job) startUnknown(err error) done {
	j.absences.doubt(j.command.GetVmId())
	seen := absent(j.command)
	seen.domain.State = ""
	return done{result: doubt(j.command, err, seen.message())}
}

// awaitAbsence waits until the VM is absent for certain, or here, or the time is over.
func (j *job) awaitAbsence() (seen sight, sure bool) {
	seen = j.await(patience, func(s sight) bool {
		sure = j.absences.positive(j.command.GetVmId(), s, j.now())
		return sure || s.known() && !s.absent()
	})
	return seen, sure
}

// seedOf is the content of the VM's seed image.
func seedOf(command *berthv1.Command, spec *berthv1.VMSpec) []byte {
	return volumes.SeedImage(command.GetVmId(), command.GetVmName(), spec.GetUserData())
}

// doPrepare promises to resume the guest of a migration, and makes the volumes that it is copied into. The answer is the promise: it
// is journalled with a ticket (ticket.go).
func doPrepare(j *job) done {
	order := j.command.GetPrepare()
	seen := j.firstLook(haste)
	switch {
	case !seen.known() && j.takenUp:
		return done{result: doubt(j.command, seen.err, seen.message()), again: true}
	case !seen.known():
		return done{result: refused(j.command, seen.err, seen.message())}
	case !seen.gone():
		err := fmt.Errorf("%w: %s is %s here under epoch %d", hypervisor.ErrExists, seen.domain.Name, seen.domain.State, seen.domain.Epoch)
		return done{result: failure(j.command, err, seen.message())}
	}
	err := volumes.Make(j.ctx, j.Hypervisor, order.GetVolumes(), seedOf(j.command, order.GetSpec()))
	if err != nil && j.takenUp {
		err = volumes.Both(err, volumes.Remove(j.ctx, j.Hypervisor, order.GetVolumes()))
	}
	switch {
	case err == nil:
		return done{result: success(j.command, seen.message()), promises: true}
	case errors.Is(err, volumes.ErrLeft):
		return done{result: doubt(j.command, err, seen.message()), again: true}
	default:
		return done{result: failure(j.command, err, seen.message()), obeyFrom: j.command.GetEpoch() + 1}
	}
}

// doClear removes volumes that are not needed any more. It never touches a domain or a volume that a domain uses. Its failures
// are not kept: the same order is sent until the volumes are gone.
func doClear(j *job) done {
	for deadline := j.now().Add(patience); ; {
		seen, sure := j.awaitAbsence()
		err := seen.err
		switch {
		case seen.known() && !seen.gone():
			err = fmt.Errorf("%w: the VM is %s here", hypervisor.ErrInUse, seen.domain.State)
		case sure || seen.gone() && !seen.absent():
			err = volumes.Remove(j.ctx, j.Hypervisor, j.command.GetClear().GetVolumes())
		case err == nil:
			err = errors.New("a start of the VM may still take effect")
		}
		switch {
		case err == nil:
			return done{result: success(j.command, seen.message()), obeyFrom: j.command.GetEpoch() + 1}
		case errors.Is(err, hypervisor.ErrInUse):
			return done{result: failure(j.command, err, seen.message()), again: true}
		case !j.now().Before(deadline) || j.sleep(retryEvery) != nil:
			return done{result: doubt(j.command, err, seen.message()), again: true}
		}
	}
}
