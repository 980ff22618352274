package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/volumes"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	// letGoLimit is how long a guest has to let go of a device that is detached.
	letGoLimit = 30 * time.Second
	// letGoEvery is between two looks whether it has.
	letGoEvery = 500 * time.Millisecond
)

// errKept says that a guest does not let go of a device.
var errKept = errors.New("the guest has not let go of it")

// doAmend changes devices of a guest that runs. Repeating it is harmless: what is as the order says already is done. What could not be seen
// is tried again.
func doAmend(j *job) done {
	seen := j.firstLook(haste)
	if err := j.stands(seen); err != nil {
		return unmade(j, j.notStood(seen, err))
	}
	if !seen.in(hypervisor.Running) && !seen.in(hypervisor.Paused) {
		return unmade(j, j.notStood(seen, otherState(seen)))
	}
	for _, edit := range j.command.GetAmend().GetEdits() {
		if err := amend(j, edit); err != nil {
			return unmade(j, notAmended(j, edit, err))
		}
	}
	return done{result: success(j.command, j.look().message())}
}

// notAmended is an order that could not be carried out, by what a look shows now.
func notAmended(j *job, edit *berthv1.DeviceEdit, err error) done {
	seen := j.await(haste, sight.known)
	err = fmt.Errorf("%s %s: %w", edit.GetKind(), edit.GetKey(), err)
	unsure := errors.Is(err, hypervisor.ErrAmbiguous) || errors.Is(err, hypervisor.ErrUnavailable) || errors.Is(err, volumes.ErrLeft)
	if !seen.known() || unsure {
		return done{result: doubt(j.command, err, seen.message()), again: true, begun: true}
	}
	return done{result: refused(j.command, err, seen.message())}
}

// provideNew makes the volumes that a device is attached with. One that an earlier life of the agent has made is used: libvirt may be
// attaching it at this moment, and nothing has been written to it.
func provideNew(j *job) error {
	for _, volume := range j.command.GetAmend().GetVolumes() {
		there, err := j.Hypervisor.LookupVolume(j.ctx, volume.GetPool(), volume.GetName())
		whole := there.CapacityBytes == volume.GetCapacityBytes() && there.Format == volume.GetFormat()
		switch {
		case err != nil && !errors.Is(err, hypervisor.ErrNoVolume):
			return fmt.Errorf("make %s: %w", volumes.Name(volume), err)
		case err == nil && whole:
			continue
		}
		if err := volumes.Make(j.ctx, j.Hypervisor, []*berthv1.Volume{volume}, nil); err != nil {
			return err
		}
	}
	return nil
}

// unmade removes the volumes of an order that was not carried out, before that is answered: its receiver relies on it. What a guest has
// all the same, or what cannot be removed now, leaves the answer in doubt.
func unmade(j *job, d done) done {
	made := j.command.GetAmend().GetVolumes()
	if len(made) == 0 || d.result.GetOutcome() != berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED {
		return d
	}
	why := errors.New(d.result.GetError())
	err := volumes.Remove(j.ctx, j.Hypervisor, made)
	if errors.Is(err, hypervisor.ErrNoPool) && !j.takenUp {
		err = nil // nothing was made where no pool is
	}
	if err != nil {
		return done{result: doubt(j.command, volumes.Both(why, err), d.result.GetDomain()), again: true, begun: true}
	}
	d.result.Outcome = berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED
	return d
}

// amend changes one device, and returns when the domain has it so.
func amend(j *job, edit *berthv1.DeviceEdit) error {
	live, err := j.device(edit)
	if err != nil {
		return err
	}
	change, element := hypervisor.Attach, edit.GetXml()
	switch {
	case live == nil && element == "":
		return nil // it is gone already
	case live != nil && element == "":
		change, element = hypervisor.Detach, live.XML
	case live != nil:
		wanted, err := domxml.DeviceOf(element)
		if err != nil {
			return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
		}
		switch same := wanted.Source == live.Source && wanted.Network == live.Network && wanted.Media == live.Media; {
		case same:
			return nil
		case !live.Media || !wanted.Media:
			return fmt.Errorf("%w: another device has that name", hypervisor.ErrExists)
		}
		change = hypervisor.Update
	}
	if change == hypervisor.Attach {
		if err := provideNew(j); err != nil {
			return err
		}
	}
	ctx, cancel := j.limited(actLimit)
	err = j.Hypervisor.ChangeDevice(ctx, j.command.GetVmId(), j.command.GetEpoch(), change, element)
	cancel()
	if err != nil || change != hypervisor.Detach {
		return err
	}
	for deadline := j.now().Add(letGoLimit); ; {
		live, err := j.device(edit)
		switch {
		case err != nil:
			return err
		case live == nil:
			return nil
		case !j.now().Before(deadline) || j.sleep(letGoEvery) != nil:
			return fmt.Errorf("%w: %w within %s; it may do so later", hypervisor.ErrInvalidState, errKept, letGoLimit)
		}
	}
}

// device is one that the domain has now; nil: it has none of that name.
func (j *job) device(edit *berthv1.DeviceEdit) (*domxml.Device, error) {
	text, err := j.Hypervisor.XML(j.ctx, j.command.GetVmId())
	if err != nil {
		return nil, err
	}
	devices, err := domxml.Devices(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	for i := range devices {
		if string(devices[i].Kind) == edit.GetKind() && strings.EqualFold(devices[i].Key, edit.GetKey()) {
			return &devices[i], nil
		}
	}
	return nil, nil
}
