package jobs

import (
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// inspect only looks, and is never remembered.
func (j *Jobs) inspect(command *berthv1.Command) *berthv1.CommandResult {
	domain, unknown := j.look(command)
	if unknown {
		return doubt(command, errors.New("the hypervisor cannot tell"), telemetry.Domain(domain))
	}
	return success(command, telemetry.Domain(domain))
}

// start creates the domain. Repeating it is safe: libvirt knows one domain of a UUID, and a look comes first and last.
func (j *Jobs) start(command *berthv1.Command) done {
	domain, unknown := j.look(command)
	switch {
	case unknown:
		return j.notStarted(command, hypervisor.ErrUnavailable)
	case domain.State != hypervisor.Absent && domain.Epoch == command.GetEpoch() && domain.State != hypervisor.Shutoff:
		return done{result: success(command, telemetry.Domain(domain))}
	case domain.State != hypervisor.Absent:
		err := fmt.Errorf("%w: %s is %s here under epoch %d", hypervisor.ErrExists, domain.Name, domain.State, domain.Epoch)
		return j.notStarted(command, err)
	}
	xml, err := j.render(command)
	if err != nil {
		return j.notStarted(command, fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err))
	}
	err = j.Hypervisor.Start(j.ctx, xml)
	domain, unknown = j.look(command)
	switch {
	case !unknown && !gone(domain) && domain.Epoch == command.GetEpoch():
		return done{result: success(command, telemetry.Domain(domain))}
	case unknown, errors.Is(err, hypervisor.ErrAmbiguous):
		return done{result: doubt(command, err, telemetry.Domain(domain))}
	case err == nil: // it ran and is gone: the guest powered off, or somebody destroyed it
		return j.notStarted(command, errors.New("the guest ended as soon as it was started"))
	default:
		return j.notStarted(command, err)
	}
}

// notStarted fails a start, and with it every order of its epoch: from now on this node refuses it, so that the failure
// is evidence and the VM may be placed elsewhere.
func (j *Jobs) notStarted(command *berthv1.Command, err error) done {
	return done{result: failure(command, codeOf(err), err, j.seen(command)), obeyFrom: command.GetEpoch() + 1}
}

func (j *Jobs) render(command *berthv1.Command) (string, error) {
	info, err := j.Hypervisor.Host(j.ctx)
	if err != nil {
		return "", err
	}
	caps, err := domxml.ParseCapabilities(info.CapabilitiesXML)
	if err != nil {
		return "", err
	}
	machine, err := caps.Machine(j.VirtType)
	if err != nil {
		return "", err
	}
	wanted := command.GetStart().GetSpec()
	spec := domxml.Spec{
		MemoryBytes: wanted.GetMemoryBytes(), VCPUs: int(wanted.GetVcpus()), Kernel: wanted.GetKernel(), Initrd: wanted.GetInitrd(),
		Cmdline: wanted.GetCmdline(), Networks: wanted.GetNetworks(), XML: wanted.GetXml(),
	}
	for _, disk := range wanted.GetDisks() {
		spec.Disks = append(spec.Disks, domxml.Disk{
			Path: disk.GetPath(), Format: disk.GetFormat(), Bus: disk.GetBus(), ReadOnly: disk.GetReadOnly(),
		})
	}
	return domxml.Render(spec, domxml.Identity{
		UUID: command.GetVmId(), Name: command.GetVmName(),
		Mark: domxml.Mark{Epoch: command.GetEpoch(), Operation: command.GetOperationId(), Node: j.NodeID},
	}, machine)
}

// stopPoll is how often a guest that shuts down is looked at.
const stopPoll = 250 * time.Millisecond

// stop asks the guest, waits for its grace time, and powers it off.
func (j *Jobs) stop(command *berthv1.Command) done {
	order := command.GetStop()
	domain, unknown := j.look(command)
	switch {
	case unknown:
		return done{result: doubt(command, hypervisor.ErrUnavailable, telemetry.Domain(domain))}
	case gone(domain):
		return stopped(command, domain)
	case domain.Epoch != command.GetEpoch():
		err := fmt.Errorf("%w: it runs here under epoch %d, the order is for %d", hypervisor.ErrOtherEpoch, domain.Epoch, command.GetEpoch())
		return done{result: failure(command, codeOf(err), err, telemetry.Domain(domain))}
	}
	if !order.GetForce() {
		// A guest that cannot be asked is waited for as well: its owner may be shutting it down from inside.
		if err := j.Hypervisor.Shutdown(j.ctx, command.GetVmId()); err != nil {
			j.Logger.Warn("the guest could not be asked to shut down", "vm", command.GetVmName(), "error", err)
		}
		deadline := time.Now().Add(time.Duration(order.GetGraceSeconds() * float64(time.Second)))
		for time.Now().Before(deadline) && j.ctx.Err() == nil {
			if domain, unknown = j.look(command); !unknown && gone(domain) {
				return stopped(command, domain)
			}
			select {
			case <-j.ctx.Done():
			case <-time.After(stopPoll):
			}
		}
	}
	err := j.Hypervisor.Destroy(j.ctx, command.GetVmId(), command.GetEpoch())
	domain, unknown = j.look(command)
	switch {
	case !unknown && gone(domain):
		return stopped(command, domain)
	case err == nil || unknown || errors.Is(err, hypervisor.ErrAmbiguous):
		return done{result: doubt(command, err, telemetry.Domain(domain))}
	default:
		return done{result: failure(command, codeOf(err), err, telemetry.Domain(domain))}
	}
}

func stopped(command *berthv1.Command, domain hypervisor.Domain) done {
	return done{result: success(command, telemetry.Domain(domain)), obeyFrom: command.GetEpoch() + 1}
}

// resume lets the paused copy of a finished migration run.
func (j *Jobs) resume(command *berthv1.Command) done {
	domain, unknown := j.look(command)
	if !unknown && domain.State != hypervisor.Running && !gone(domain) {
		err := j.Hypervisor.Resume(j.ctx, command.GetVmId(), command.GetEpoch())
		domain, unknown = j.look(command)
		if err != nil && !unknown && domain.State != hypervisor.Running {
			return done{result: doubt(command, err, telemetry.Domain(domain)), again: true}
		}
	}
	switch {
	case unknown:
		return done{result: doubt(command, hypervisor.ErrUnavailable, telemetry.Domain(domain)), again: true}
	case gone(domain):
		err := fmt.Errorf("%w: nothing to resume", hypervisor.ErrNotFound)
		return done{result: failure(command, codeOf(err), err, telemetry.Domain(domain)), obeyFrom: command.GetEpoch() + 1}
	case domain.Epoch != command.GetEpoch():
		err := fmt.Errorf("%w: epoch %d is here, the order is for %d", hypervisor.ErrOtherEpoch, domain.Epoch, command.GetEpoch())
		return done{result: doubt(command, err, telemetry.Domain(domain)), again: true}
	}
	answer := success(command, telemetry.Domain(domain))
	// This node was the target: the job's final figures, the downtime among them, are here.
	if job, err := j.Hypervisor.Job(j.ctx, command.GetVmId(), true); err == nil {
		answer.Migration = stats(job)
	}
	return done{result: answer}
}

// discard destroys the paused leftover of a migration, and nothing else.
func (j *Jobs) discard(command *berthv1.Command) done {
	domain, unknown := j.look(command)
	if !unknown && domain.Epoch == command.GetEpoch() && !domain.JobActive &&
		(domain.State == hypervisor.Paused || domain.State == hypervisor.PausedMigration) {
		if err := j.Hypervisor.Destroy(j.ctx, command.GetVmId(), command.GetEpoch()); err != nil {
			j.Logger.Warn("a leftover could not be destroyed", "vm", command.GetVmName(), "error", err)
		}
		domain, unknown = j.look(command)
	}
	switch {
	case !unknown && gone(domain):
		return done{result: success(command, telemetry.Domain(domain)), obeyFrom: command.GetEpoch() + 1}
	case !unknown && domain.State == hypervisor.Running:
		err := fmt.Errorf("%w: it runs", hypervisor.ErrInvalidState)
		return done{result: failure(command, codeOf(err), err, telemetry.Domain(domain)), again: true}
	default:
		return done{result: doubt(command, errors.New("the leftover is still here"), telemetry.Domain(domain)), again: true}
	}
}
