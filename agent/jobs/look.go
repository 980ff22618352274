package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	// patience is how long a command waits for a hypervisor that does not answer, before it leaves the verdict to the
	// coordinator. libvirtd restarts in a few seconds.
	patience = 60 * time.Second
	// haste is the same before anything has been tried. A start waits shorter, because another node can carry it out.
	startHaste = 3 * time.Second
	haste      = 15 * time.Second

	pollEvery = 250 * time.Millisecond

	// surelyAbsent is how long a VM whose start is in doubt must be seen absent. A hypervisor that hung carries out what it has
	// in its queues when it comes back, a moment after it answers questions again.
	surelyAbsent = 10 * time.Second
)

// sight is what the hypervisor shows of a VM.
type sight struct {
	domain hypervisor.Domain
	err    error // why nothing is known; nil: the domain is as it says
}

func (s sight) known() bool  { return s.err == nil }
func (s sight) absent() bool { return s.known() && s.domain.State == hypervisor.Absent }

// gone is absent, or only a definition.
func (s sight) gone() bool { return s.absent() || s.known() && s.domain.State == hypervisor.Shutoff }

// cleared tells that the hypervisor has finished its work for a VM that is gone: the VM may come back.
func (s sight) cleared() bool { return s.gone() && !s.domain.JobActive }

// holds tells whether the VM is here under this epoch, in any state.
func (s sight) holds(epoch uint64) bool { return s.known() && !s.gone() && s.domain.Epoch == epoch }

// orphan tells that the guest runs and libvirt has forgotten it. Waiting does not help.
func (s sight) orphan() bool { return errors.Is(s.err, hypervisor.ErrOrphan) }

func (s sight) in(state hypervisor.State) bool { return s.known() && s.domain.State == state }

// message is the sight in the form of answers.
func (s sight) message() *berthv1.Domain { return telemetry.Domain(s.domain) }

// absent is the sight of a VM that is not here.
func absent(command *berthv1.Command) sight {
	return sight{domain: hypervisor.Domain{UUID: command.GetVmId(), Name: command.GetVmName(), State: hypervisor.Absent}}
}

// look asks the hypervisor once.
func (j *job) look() sight {
	domain, err := hypervisor.Look(j.ctx, j.Hypervisor, j.command.GetVmId(), j.command.GetVmName())
	if errors.Is(err, hypervisor.ErrNotFound) {
		return absent(j.command)
	}
	if err != nil {
		return sight{domain: hypervisor.Domain{UUID: j.command.GetVmId(), Name: j.command.GetVmName()}, err: err}
	}
	if domain.State == hypervisor.Orphan {
		// It is here, and libvirt cannot be asked to do anything to it: all that is known is that it is not absent.
		return sight{domain: domain, err: fmt.Errorf("%w: %s: end that process", hypervisor.ErrOrphan, domain.Reason)}
	}
	if domain.State == hypervisor.Starting {
		// Neither here nor absent: if libvirtd has died during the launch, the guest dies as well.
		return sight{domain: domain, err: fmt.Errorf("%w: it is being launched", hypervisor.ErrBusy)}
	}
	return sight{domain: domain}
}

// await looks until the sight is as wanted, or the time is over. It returns the last sight.
func (j *job) await(limit time.Duration, wanted func(sight) bool) sight {
	deadline := j.now().Add(limit)
	for {
		seen := j.look()
		if wanted(seen) || !j.now().Before(deadline) || j.sleep(pollEvery) != nil {
			return seen
		}
	}
}

// firstLook is the look before anything is tried. It waits longer if an earlier life may have begun the command.
func (j *job) firstLook(haste time.Duration) sight {
	if j.takenUp {
		haste = patience
	}
	return j.await(haste, func(s sight) bool { return s.known() || s.orphan() })
}

// sleep ends early, with an error, when the agent stops.
func (j *Jobs) sleep(d time.Duration) error {
	_, err := j.Scheduler.Wait(j.ctx, nil, d)
	return err
}

// limited is the context of one call that changes something.
func (j *Jobs) limited(limit time.Duration) (context.Context, context.CancelFunc) {
	return j.Scheduler.Limit(j.ctx, limit)
}

// absences is the VMs whose absence is in doubt. The zero value is ready.
type absences struct {
	mu    sync.Mutex
	since map[string]time.Time // when the VM was first seen absent; zero: not yet
}

// doubt notes that a start may still take effect.
func (a *absences) doubt(vm string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil {
		a.since = map[string]time.Time{}
	}
	a.since[vm] = time.Time{}
}

// positive records a sight and tells whether the VM is absent for certain.
func (a *absences) positive(vm string, seen sight, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, doubtful := a.since[vm]
	switch {
	case !doubtful:
		return seen.absent()
	case !seen.known():
		a.since[vm] = time.Time{} // it hangs again: wait again
		return false
	case !seen.absent():
		delete(a.since, vm) // it has started
		return false
	case since.IsZero():
		a.since[vm] = now
		return false
	case now.Sub(since) < surelyAbsent:
		return false
	}
	delete(a.since, vm)
	return true
}

// inspect only looks, and its answer is not kept. It does not wait for a command of the VM that is in work; a command that
// comes meanwhile waits for it.
func (j *job) inspect() *berthv1.CommandResult {
	defer j.turns.tryTake(j.command.GetVmId())()
	seen := j.look()
	positive := j.absences.positive(j.command.GetVmId(), seen, j.now())
	ended, sure := j.endings.how(j.command.GetVmId(), seen, j.now())
	shown := seen.message()
	shown.EndedHere = ended
	shown.EndUnseen = j.endings.unseen(j.command.GetVmId(), seen) && !j.Hypervisor.Left(j.ctx, j.command.GetVmId(), j.command.GetVmName())
	switch {
	case !seen.known():
		return doubt(j.command, seen.err, shown)
	case !sure:
		seen.domain.State = ""
		return doubt(j.command, errors.New("how the guest ended here has not been told yet"), seen.message())
	case !seen.absent():
		return success(j.command, shown)
	case j.starting(j.command.GetVmId()) || !positive:
		seen.domain.State = "" // not here yet
		return doubt(j.command, errors.New("a start of the VM may still take effect"), seen.message())
	}
	if err := j.journal.refuseStarts(j.command.GetVmId(), j.command.GetEpoch(), j.now()); err != nil {
		seen.domain.State = ""
		return doubt(j.command, err, seen.message())
	}
	return success(j.command, shown)
}
