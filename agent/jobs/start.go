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
func doStart(j *job) done {
	seen := j.firstLook(startHaste)
	switch {
	case !seen.known() && j.takenUp:
		return done{result: doubt(j.command, seen.err, seen.message())}
	case !seen.known():
		return notStarted(j.command, seen.err, seen)
	case seen.holds(j.command.GetEpoch()):
		return j.started(seen)
	case seen.known() && j.ownDefinition(seen):
		if err := j.undefine(seen); err != nil {
			return notStarted(j.command, err, seen)
		}
		j.defined = true
	case !seen.absent():
		err := fmt.Errorf("%w: %s is %s here under epoch %d", hypervisor.ErrExists, seen.domain.Name, seen.domain.State, seen.domain.Epoch)
		return notStarted(j.command, err, seen)
	}
	if made, d := j.provide(); !made {
		return d
	}
	return j.cleared(j.launch())
}

// ownDefinition tells whether what is here is the definition that the VM kept when it was last stopped: it is persistent, or somebody has
// defined it while it ran. The order has the new definition.
func (j *job) ownDefinition(seen sight) bool {
	return seen.in(hypervisor.Shutoff) && seen.domain.Managed &&
		seen.domain.Epoch < j.command.GetEpoch() && seen.domain.Name == j.command.GetVmName()
}

func (j *job) undefine(seen sight) error {
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	return j.Hypervisor.Undefine(ctx, seen.domain.UUID, seen.domain.Epoch)
}

// keep makes libvirt keep the definition of a persistent VM that runs now, or of one that somebody wants it to keep. It matters only once
// Berth is gone, so the VM runs without it as well.
func (j *job) keep(xml string) {
	if !j.command.GetStart().GetPersistent() && !j.defined {
		return
	}
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	if err := j.Hypervisor.Define(ctx, xml); err != nil {
		j.Logger.Warn("the definition of a VM could not be kept: it is transient", "vm", j.command.GetVmName(), "error", err)
	}
}

// launch creates the domain, which is not here, and looks what has become of it.
func (j *job) launch() done {
	xml, err := j.render()
	note := ""
	if err == nil && j.command.GetStart().GetUnwatched() {
		refused, said := overlaid(j, xml)
		if refused != nil {
			return *refused
		}
		note = said
	}
	ended := create(j, xml, err)
	ended.result.Note = note
	return ended
}

// create has the hypervisor start a document, unless there is none.
func create(j *job, xml string, err error) done {
	seen := absent(j.command)
	if err == nil {
		ctx, cancel := j.limited(startLimit)
		err = j.Hypervisor.Start(ctx, xml)
		cancel()
	}
	if err == nil {
		j.keep(xml)
	}
	switch {
	case errors.Is(err, hypervisor.ErrAmbiguous), err != nil && j.takenUp:
		return j.startInDoubt(err) // what an earlier life asked for may still take effect
	case errors.Is(err, hypervisor.ErrUnavailable):
		return notStarted(j.command, err, sight{domain: seen.domain, err: err}) // the hypervisor was not asked
	}
	seen = j.await(patience, sight.known)
	switch {
	case seen.holds(j.command.GetEpoch()):
		return j.started(seen)
	case !seen.known():
		j.absences.doubt(j.command.GetVmId())
		return done{result: doubt(j.command, seen.err, seen.message())}
	case err == nil: // it ran and is gone: the guest powered off, or somebody destroyed it
		failed := notStarted(j.command, errors.New("the guest ended as soon as it was started"), seen)
		failed.result.Domain.EndedHere = true // it may have written to its disks
		return failed
	default:
		return notStarted(j.command, err, seen)
	}
}

func (j *job) started(seen sight) done {
	j.absences.positive(j.command.GetVmId(), seen, j.now()) // there is no doubt any more
	return done{result: success(j.command, seen.message())}
}

// startInDoubt waits until it is clear whether the order was carried out.
func (j *job) startInDoubt(err error) done {
	j.absences.doubt(j.command.GetVmId())
	positive := false
	seen := j.await(patience, func(s sight) bool {
		positive = j.absences.positive(j.command.GetVmId(), s, j.now())
		return positive || s.holds(j.command.GetEpoch())
	})
	switch {
	case seen.holds(j.command.GetEpoch()):
		return j.started(seen)
	case positive:
		return notStarted(j.command, err, seen)
	default:
		seen.domain.State = ""
		return done{result: doubt(j.command, err, seen.message())}
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

func (c *machineCache) get(j *Jobs) (domxml.Machine, error) {
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

func (j *job) render() (string, error) {
	machine, err := j.machine.get(j.Jobs)
	if err != nil {
		return "", err
	}
	wanted := j.command.GetStart().GetSpec()
	spec := domxml.Spec{
		MemoryBytes: wanted.GetMemoryBytes(), VCPUs: int(wanted.GetVcpus()), Kernel: wanted.GetKernel(), Initrd: wanted.GetInitrd(),
		Cmdline: wanted.GetCmdline(), Networks: wanted.GetNetworks(), XML: wanted.GetXml(),
		Machine: wanted.GetMachine(), Firmware: wanted.GetFirmware(), CPU: wanted.GetCpu(),
		MaxMemoryBytes: wanted.GetMaxMemoryBytes(), MaxVCPUs: int(wanted.GetMaxVcpus()),
	}
	if spec.Disks, err = disksOf(j.ctx, j.Hypervisor, j.command.GetStart()); err != nil {
		return "", err
	}
	xml, err := domxml.Render(spec, domxml.Identity{
		UUID: j.command.GetVmId(), Name: j.command.GetVmName(),
		Mark: domxml.Mark{Epoch: j.command.GetEpoch(), Operation: j.command.GetOperationId(), Node: j.NodeID},
	}, machine)
	if err == nil {
		if err = lookUp(j, j.command.GetStart().GetEdits()); err != nil {
			return "", err
		}
		xml, err = domxml.EditDevices(xml, edits(j.command.GetStart()))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	return xml, nil
}

// edits are what the guest ran with last beside what its spec says.
func edits(order *berthv1.StartCommand) []domxml.DeviceEdit {
	var all []domxml.DeviceEdit
	for _, one := range order.GetEdits() {
		all = append(all, domxml.DeviceEdit{Kind: domxml.DeviceKind(one.GetKind()), Key: one.GetKey(), XML: one.GetXml()})
	}
	return all
}

// lookUp has libvirt see the volumes of devices that the guest ran with last: another node may have made one in a shared pool since this
// one has read it. What is not there is an error that names it.
func lookUp(j *job, edits []*berthv1.DeviceEdit) error {
	for _, edit := range edits {
		device, err := domxml.DeviceOf(edit.GetXml())
		if err != nil || device.Source.Volume == "" || device.Media {
			continue // what is no device is refused when it is put in, and a drive may be empty
		}
		if _, err := j.Hypervisor.LookupVolume(j.ctx, device.Source.Pool, device.Source.Volume); err != nil {
			return err
		}
	}
	return nil
}
