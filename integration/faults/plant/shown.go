package plant

import (
	"context"
	"fmt"

	"berth/agent/hypervisor"
	"berth/integration/faults/machine"
)

// Shown is a machine's libvirt as an inventory reads it, which takes no time here.
type Shown struct {
	hypervisor.Hypervisor
	At  *machine.Machine
	Bug Bug
}

// Domains implements hypervisor.Hypervisor.
func (s Shown) Domains(context.Context) ([]hypervisor.Domain, error) {
	if !s.At.Up || s.At.Hung {
		return nil, fmt.Errorf("%w: libvirt does not answer", hypervisor.ErrUnavailable)
	}
	all := machine.Listed(s.At)
	for i := range all {
		all[i].Saved = all[i].Saved && s.Bug != SavedIsGone
	}
	return all, nil
}

// Lookup implements hypervisor.Hypervisor.
func (s Shown) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	all, err := s.Domains(ctx)
	for i := range all {
		if all[i].UUID == uuid {
			return all[i], nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	}
	return hypervisor.Domain{}, err
}

// Processes implements hypervisor.Hypervisor.
func (s Shown) Processes(context.Context) ([]hypervisor.Process, error) {
	if s.Bug == OrphanUnseen {
		return nil, nil
	}
	return machine.Processes(s.At), nil
}
