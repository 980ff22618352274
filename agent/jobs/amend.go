package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/agent/hypervisor"
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
		return j.notStood(seen, err)
	}
	if !seen.in(hypervisor.Running) && !seen.in(hypervisor.Paused) {
		return j.notStood(seen, otherState(seen))
	}
	for _, edit := range j.command.GetAmend().GetEdits() {
		if err := amend(j, edit); err != nil {
			return notAmended(j, edit, err)
		}
	}
	return done{result: success(j.command, j.look().message())}
}

// notAmended is an order that could not be carried out, by what a look shows now.
func notAmended(j *job, edit *berthv1.DeviceEdit, err error) done {
	seen := j.await(haste, sight.known)
	err = fmt.Errorf("%s %s: %w", edit.GetKind(), edit.GetKey(), err)
	if !seen.known() || errors.Is(err, hypervisor.ErrAmbiguous) || errors.Is(err, hypervisor.ErrUnavailable) {
		return done{result: doubt(j.command, err, seen.message()), again: true, begun: true}
	}
	return done{result: refused(j.command, err, seen.message())}
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
