package faults

import (
	"context"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

// orphan lets libvirtd of the host that runs the VM restart and forget it. Somebody ends the guest's process after a while, as
// the alarm asks for.
func orphan(w *World, what script.Happening, _ *host) {
	uuid := uuidOf(fmt.Sprintf("vm-%d", what.VM))
	for _, h := range w.hosts {
		if !h.Forget(uuid) {
			continue
		}
		w.Draw(script.Orphan)
		w.Later(w.Between(100*time.Millisecond, 5*time.Second), h.StartDaemon)
		w.Later(what.For, func() { h.EndOrphan(uuid) })
		return
	}
}

// shown is the host's libvirt as an inventory reads it, which takes no time here.
type shown struct {
	hypervisor.Hypervisor
	at  *machine.Machine
	bug plant.Bug
}

// Domains implements hypervisor.Hypervisor.
func (s shown) Domains(context.Context) ([]hypervisor.Domain, error) {
	if !s.at.Up || s.at.Hung {
		return nil, fmt.Errorf("%w: libvirt does not answer", hypervisor.ErrUnavailable)
	}
	all := machine.Listed(s.at)
	for i := range all {
		all[i].Saved = all[i].Saved && s.bug != plant.SavedIsGone
	}
	return all, nil
}

// Lookup implements hypervisor.Hypervisor.
func (s shown) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
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
func (s shown) Processes(context.Context) ([]hypervisor.Process, error) {
	if s.bug == plant.OrphanUnseen {
		return nil, nil
	}
	return machine.Processes(s.at), nil
}
