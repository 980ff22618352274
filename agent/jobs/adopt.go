package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// markLimit bounds one try at writing or taking away a mark, so that there is time for the next.
const markLimit = 20 * time.Second

// doAdopt writes the mark of the order's epoch into a domain that is here and has no mark or one of an earlier epoch. The guest
// does not notice. If the result is in doubt it is tried again, because writing the same mark twice does no harm.
func doAdopt(j *job) done {
	mark := domxml.Mark{Epoch: j.command.GetEpoch(), Operation: j.command.GetOperationId(), Node: j.NodeID}
	return j.mark(func(seen sight) (over *done) {
		switch {
		case seen.gone():
			err := fmt.Errorf("%w: there is nothing to adopt", hypervisor.ErrNotFound)
			return &done{result: failure(j.command, err, seen.message()), obeyFrom: j.command.GetEpoch() + 1}
		case seen.holds(j.command.GetEpoch()):
			return &done{result: success(j.command, seen.message())}
		case seen.domain.Managed && seen.domain.Epoch > j.command.GetEpoch():
			return &done{result: failure(j.command, otherEpoch(j.command, seen), seen.message())}
		case seen.domain.Name != j.command.GetVmName():
			err := fmt.Errorf("%w: it is called %s here", hypervisor.ErrInvalidState, seen.domain.Name)
			return &done{result: failure(j.command, err, seen.message())}
		}
		return nil
	}, func(ctx context.Context) error { return j.Hypervisor.Mark(ctx, j.command.GetVmId(), mark) })
}

// doRelease removes the mark of the order's epoch, and this node refuses orders of that epoch from then on.
func doRelease(j *job) done {
	return j.mark(func(seen sight) (over *done) {
		switch {
		case seen.absent(), seen.gone() && !seen.domain.Managed:
			err := fmt.Errorf("%w: it does not run here", hypervisor.ErrNotFound)
			return &done{result: failure(j.command, err, seen.message())}
		case !seen.domain.Managed:
			return &done{result: success(j.command, seen.message()), obeyFrom: j.command.GetEpoch() + 1}
		case seen.domain.Epoch != j.command.GetEpoch():
			return &done{result: failure(j.command, otherEpoch(j.command, seen), seen.message())}
		}
		return nil
	}, func(ctx context.Context) error {
		return j.Hypervisor.Unmark(ctx, j.command.GetVmId(), j.command.GetEpoch())
	})
}

// mark changes a domain's mark until a look shows that it is as ordered, or cannot be. It keeps trying while libvirt is away
// or the domain is busy.
func (j *job) mark(judge func(sight) *done, change func(context.Context) error) done {
	var last error
	for deadline := j.now().Add(patience); ; {
		seen := j.look()
		switch {
		case seen.orphan():
			return done{result: failure(j.command, seen.err, seen.message())}
		case !seen.known():
			last = seen.err
		case seen.domain.JobActive, seen.in(hypervisor.PausedMigration) && !seen.domain.Managed:
			// Nobody ordered the job of a domain that is not Berth's, so it has to end first.
			last = fmt.Errorf("%w: it is being migrated", hypervisor.ErrBusy)
		default:
			if over := judge(seen); over != nil {
				return *over
			}
			ctx, cancel := j.limited(markLimit)
			last = change(ctx)
			cancel()
			if seen = j.look(); seen.known() {
				if over := judge(seen); over != nil {
					return *over
				}
			}
			if last == nil {
				last = errors.New("its mark was changed and is as it was")
			}
			if refusing(last) {
				return done{result: failure(j.command, last, seen.message())}
			}
		}
		if !j.now().Before(deadline) || j.sleep(pollEvery) != nil {
			return done{result: doubt(j.command, last, seen.message()), again: true}
		}
	}
}

// refusing tells whether trying again cannot help.
func refusing(err error) bool {
	return errors.Is(err, hypervisor.ErrDenied) || errors.Is(err, hypervisor.ErrUnsupported) || errors.Is(err, hypervisor.ErrInvalidState)
}

// Refuse makes this node refuse orders for a VM up to an epoch from now on, if the VM is for certain not here; a definition
// alone does not run. When it returns without an error, that is on disk. The error is hypervisor.ErrInvalidState when the VM
// is here; any other error means that it is not known now.
func (j *Jobs) Refuse(ctx context.Context, vm string, epoch uint64) error {
	return j.inTurn(ctx, vm, epoch, func(one *job) error {
		seen := one.look()
		positive := j.absences.positive(vm, seen, j.now())
		switch {
		case !seen.known():
			return seen.err
		case !seen.gone():
			return fmt.Errorf("%w: it is %s here, under epoch %d", hypervisor.ErrInvalidState, seen.domain.State, seen.domain.Epoch)
		case j.starting(vm) || seen.absent() && !positive:
			return fmt.Errorf("%w: a start of the VM may still take effect", hypervisor.ErrBusy)
		}
		if err := j.journal.refuseStarts(vm, epoch, j.now()); err != nil {
			return fmt.Errorf("journal it: %w", err)
		}
		if err := j.journal.refuse(vm, epoch); err != nil {
			return fmt.Errorf("journal it: %w", err)
		}
		j.Logger.Info("orders for a VM that is not here are refused from now on", "vm", vm, "up_to_epoch", epoch)
		return nil
	})
}

// inTurn runs something that belongs to no operation, while no order of the VM is in work. The job has VM and epoch.
func (j *Jobs) inTurn(ctx context.Context, vm string, epoch uint64, do func(*job) error) error {
	if vm == "" || epoch == 0 {
		return fmt.Errorf("%w: no VM or no epoch", hypervisor.ErrInvalidState)
	}
	giveBack, err := j.turns.take(ctx, vm)
	if err != nil {
		return fmt.Errorf("%w: an order of the VM is worked on: %w", hypervisor.ErrBusy, err)
	}
	defer giveBack()
	return do(&job{Jobs: j, command: &berthv1.Command{VmId: vm, Epoch: epoch}})
}
