package jobs

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// startLimit is long because QEMU may have to reserve and clear hundreds of GiB before it answers.
const startLimit = 5 * time.Minute

// doStart creates the domain. Repeating it is safe: a hypervisor has at most one domain of a UUID, and start looks before and
// after.
func doStart(j *Jobs, command *berthv1.Command, one *job) done {
	takenUp := one.takenUp
	seen := j.firstLook(command, takenUp, startHaste)
	switch {
	case !seen.known() && takenUp:
		return done{result: doubt(command, seen.err, seen.message())}
	case !seen.known():
		return notStarted(command, seen.err, seen)
	case seen.holds(command.GetEpoch()):
		return j.started(command, seen)
	case seen.known() && j.ownDefinition(command, seen):
		if err := j.undefine(seen); err != nil {
			return notStarted(command, err, seen)
		}
	case !seen.absent():
		err := fmt.Errorf("%w: %s is %s here under epoch %d", hypervisor.ErrExists, seen.domain.Name, seen.domain.State, seen.domain.Epoch)
		return notStarted(command, err, seen)
	}
	if made, d := j.provide(command, takenUp); !made {
		return d
	}
	return j.cleared(command, j.launch(command, takenUp))
}

// ownDefinition tells whether what is here is the definition that a persistent VM kept when it was last stopped. The order
// has the new definition.
func (j *Jobs) ownDefinition(command *berthv1.Command, seen sight) bool {
	return command.GetStart().GetPersistent() && seen.in(hypervisor.Shutoff) && seen.domain.Managed &&
		seen.domain.Epoch < command.GetEpoch() && seen.domain.Name == command.GetVmName()
}

func (j *Jobs) undefine(seen sight) error {
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	return j.Hypervisor.Undefine(ctx, seen.domain.UUID, seen.domain.Epoch)
}

// keep makes libvirt keep the definition of a persistent VM that runs now. It matters only once Berth is gone, so the VM runs
// without it as well.
func (j *Jobs) keep(command *berthv1.Command, xml string) {
	if !command.GetStart().GetPersistent() {
		return
	}
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	if err := j.Hypervisor.Define(ctx, xml); err != nil {
		j.Logger.Warn("the definition of a VM could not be kept: it is transient", "vm", command.GetVmName(), "error", err)
	}
}

// launch creates the domain, which is not here, and looks what has become of it.
func (j *Jobs) launch(command *berthv1.Command, takenUp bool) done {
	seen := absent(command)
	xml, err := j.render(command)
	if err == nil {
		ctx, cancel := j.limited(startLimit)
		err = j.Hypervisor.Start(ctx, xml)
		cancel()
	}
	if err == nil {
		j.keep(command, xml)
	}
	switch {
	case errors.Is(err, hypervisor.ErrAmbiguous), err != nil && takenUp:
		return j.startInDoubt(command, err) // what an earlier life asked for may still take effect
	case errors.Is(err, hypervisor.ErrUnavailable):
		return notStarted(command, err, sight{domain: seen.domain, err: err}) // the hypervisor was not asked
	}
	seen = j.await(command, patience, sight.known)
	switch {
	case seen.holds(command.GetEpoch()):
		return j.started(command, seen)
	case !seen.known():
		j.absences.doubt(command.GetVmId())
		return done{result: doubt(command, seen.err, seen.message())}
	case err == nil: // it ran and is gone: the guest powered off, or somebody destroyed it
		return notStarted(command, errors.New("the guest ended as soon as it was started"), seen)
	default:
		return notStarted(command, err, seen)
	}
}

func (j *Jobs) started(command *berthv1.Command, seen sight) done {
	j.absences.positive(command.GetVmId(), seen, j.now()) // there is no doubt any more
	return done{result: success(command, seen.message())}
}

// startInDoubt waits until it is clear whether the order was carried out.
func (j *Jobs) startInDoubt(command *berthv1.Command, err error) done {
	j.absences.doubt(command.GetVmId())
	positive := false
	seen := j.await(command, patience, func(s sight) bool {
		positive = j.absences.positive(command.GetVmId(), s, j.now())
		return positive || s.holds(command.GetEpoch())
	})
	switch {
	case seen.holds(command.GetEpoch()):
		return j.started(command, seen)
	case positive:
		return notStarted(command, err, seen)
	default:
		seen.domain.State = ""
		return done{result: doubt(command, err, seen.message())}
	}
}

// notStarted fails a start and every order of its epoch: this node refuses the epoch from now on. So the failure is evidence,
// and the VM may be placed elsewhere.
func notStarted(command *berthv1.Command, err error, seen sight) done {
	return done{result: failure(command, err, seen.message()), obeyFrom: command.GetEpoch() + 1}
}

// machineCache keeps the node's capabilities for a while: reading them takes longer than the rest of a start.
type machineCache struct {
	mu      sync.Mutex
	machine domxml.Machine
	until   time.Time
}

const machineFresh = 5 * time.Minute

func (j *Jobs) renderMachine() (domxml.Machine, error) {
	c := &j.machine
	c.mu.Lock()
	known, fresh := c.machine, j.now().Before(c.until)
	c.mu.Unlock()
	if fresh {
		return known, nil
	}
	info, err := j.Hypervisor.Host(j.ctx)
	if err != nil {
		return domxml.Machine{}, err
	}
	capabilities, err := domxml.ParseCapabilities(info.CapabilitiesXML)
	if err != nil {
		return domxml.Machine{}, err
	}
	machine, err := capabilities.Machine(j.VirtType)
	if err != nil {
		return domxml.Machine{}, fmt.Errorf("%w: %w", hypervisor.ErrUnsupported, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine, c.until = machine, j.now().Add(machineFresh)
	return machine, nil
}

func (j *Jobs) render(command *berthv1.Command) (string, error) {
	machine, err := j.renderMachine()
	if err != nil {
		return "", err
	}
	wanted := command.GetStart().GetSpec()
	spec := domxml.Spec{
		MemoryBytes: wanted.GetMemoryBytes(), VCPUs: int(wanted.GetVcpus()), Kernel: wanted.GetKernel(), Initrd: wanted.GetInitrd(),
		Cmdline: wanted.GetCmdline(), Networks: wanted.GetNetworks(), XML: wanted.GetXml(),
		Machine: wanted.GetMachine(), Firmware: wanted.GetFirmware(), CPU: wanted.GetCpu(),
	}
	if spec.Disks, err = j.disks(command.GetStart()); err != nil {
		return "", err
	}
	xml, err := domxml.Render(spec, domxml.Identity{
		UUID: command.GetVmId(), Name: command.GetVmName(),
		Mark: domxml.Mark{Epoch: command.GetEpoch(), Operation: command.GetOperationId(), Node: j.NodeID},
	}, machine)
	if err != nil {
		return "", fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	return xml, nil
}
