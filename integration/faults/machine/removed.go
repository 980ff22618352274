package machine

import (
	"context"
	"fmt"

	"berth/agent/hypervisor"
)

// NewRemoved adds the machine of a node that was removed from the site while it stood still. It has a guest that runs.
func (s *Site) NewRemoved(id string, memory int64, runs hypervisor.Domain) *Machine {
	h := &Machine{
		Site: s, ID: id, Memory: memory, Hardware: "hardware of " + id, On: true, Up: true, moment: make(chan struct{}),
		Domains: map[string]*Domain{}, left: map[string]*Domain{}, completed: map[string]hypervisor.Job{},
	}
	h.disk = &disk{at: h, buckets: map[string]map[string][]byte{}}
	h.pool = &pool{of: h, volumes: map[string]*volume{}}
	h.Dog.at = h
	runs.State = hypervisor.Running
	h.Domains[runs.UUID] = &Domain{Domain: runs, At: h, guest: &guest{vm: runs.UUID}}
	return h
}

// Suspend implements hypervisor.Hypervisor.
func (l *Libvirt) Suspend(ctx context.Context, uuid string, epoch uint64) error {
	return l.change(ctx, "suspend", uuid, func() error {
		switch d := l.At.Domains[uuid]; {
		case d == nil || d.Forgotten:
			return fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
		case d.Epoch != epoch:
			return fmt.Errorf("%w: %s", hypervisor.ErrOtherEpoch, uuid)
		case d.State == hypervisor.Running:
			l.At.Set(d, hypervisor.Paused, "user")
		}
		return nil
	})
}
