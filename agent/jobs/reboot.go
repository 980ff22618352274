package jobs

import (
	"errors"
	"fmt"
	"time"

	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	// rebootLimit is how long a guest that was asked has to restart: it ends its services first.
	rebootLimit = 3 * time.Minute
	// resetLimit is the same for one that was not asked.
	resetLimit = 10 * time.Second
	// rebootEvery is how often a guest that is to restart is looked at: it may end instead.
	rebootEvery = time.Second
)

// asking is in the step of the line by which the journal has that the guest is about to be asked.
const asking = 1 << 31

// doReboot restarts the guest in place. No state shows afterwards that a guest has restarted, only an event does. So the guest is
// asked once at most. When an earlier life of the agent was about to ask, or libvirt has gone away since, the restart is only
// waited for. If nothing is heard of it then, the answer is in doubt, because the event may have come meanwhile.
func doReboot(j *job) done {
	asked, err := j.journal.answered(j.command.GetOperationId(), j.command.GetStep()|asking)
	if err != nil {
		return done{result: refusal(j.command, err), again: true}
	}
	if asked != nil {
		return j.awaitReboot(hypervisor.RebootWatch, rebootLimit)
	}
	seen := j.firstLook(haste)
	if err := j.mayRestart(seen); err != nil {
		return done{result: refused(j.command, err, seen.message())}
	}
	line := &berthv1.Command{
		OperationId: j.command.GetOperationId(), Step: j.command.GetStep() | asking, VmId: j.command.GetVmId(), Epoch: j.command.GetEpoch(),
	}
	if err := j.journal.answer(line, done{result: success(line, seen.message())}, j.now()); err != nil {
		return done{result: refusal(j.command, err), again: true}
	}
	if j.command.GetReboot().GetForce() {
		return j.awaitReboot(hypervisor.RebootReset, resetLimit)
	}
	return j.awaitReboot(hypervisor.RebootAsk, rebootLimit)
}

// mayRestart says why the guest cannot restart in place.
func (j *job) mayRestart(seen sight) error {
	if err := isHere(j.command, seen); err != nil {
		return err
	}
	switch {
	case seen.domain.JobActive:
		return fmt.Errorf("%w: it is being migrated", hypervisor.ErrBusy)
	case !seen.in(hypervisor.Running):
		return otherState(seen)
	}
	xml, err := j.Hypervisor.XML(j.ctx, j.command.GetVmId())
	if err != nil {
		return err
	}
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(xml); err != nil {
		return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	if domain.OnReboot != "" && domain.OnReboot != "restart" {
		return fmt.Errorf("%w: by its definition (on_reboot) a restart is to %s it", hypervisor.ErrUnsupported, domain.OnReboot)
	}
	return nil
}

// awaitReboot has the guest restart and waits until libvirt reports that.
func (j *job) awaitReboot(how hypervisor.RebootMode, limit time.Duration) done {
	missed := how == hypervisor.RebootWatch // a restart may have been
	for deadline := j.now().Add(limit); ; how = hypervisor.RebootWatch {
		seen, err := j.reboot(how, deadline.Sub(j.now()))
		switch {
		case err == nil:
			return done{result: success(j.command, seen.message())}
		case seen.gone():
			return done{result: failure(j.command, errors.New("the guest has ended, and no restart of it was seen"), seen.message())}
		case how != hypervisor.RebootWatch && !errors.Is(err, hypervisor.ErrAmbiguous):
			return done{result: refused(j.command, err, seen.message())}
		}
		if late := !j.now().Before(deadline); !late && j.sleep(rebootEvery) == nil {
			missed = true // libvirt has gone away
			continue
		}
		if missed {
			err = fmt.Errorf("nobody saw whether the guest restarted, because the agent or libvirt was away: %w", err)
			return done{result: doubt(j.command, err, seen.message())}
		}
		err = fmt.Errorf("%w: the guest did not restart within %s; it may do so later", hypervisor.ErrAmbiguous, limit)
		return done{result: failure(j.command, err, seen.message())}
	}
}

// reboot has the hypervisor do one thing about the restart, and looks meanwhile whether the guest ends.
func (j *job) reboot(how hypervisor.RebootMode, limit time.Duration) (sight, error) {
	ctx, cancel := j.limited(limit)
	defer cancel()
	var err error
	ended := make(chan struct{})
	j.Scheduler.Go(func() {
		err = j.Hypervisor.Reboot(ctx, j.command.GetVmId(), j.command.GetEpoch(), how)
		close(ended)
	})
	for {
		over, waited := j.Scheduler.Wait(ctx, ended, rebootEvery)
		switch seen := j.look(); {
		case over:
			return seen, err
		case waited != nil, seen.gone():
			return seen, fmt.Errorf("%w: nothing was heard of a restart", hypervisor.ErrAmbiguous)
		}
	}
}
