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

// Document implements hypervisor.Hypervisor.
func (l *Libvirt) Document(ctx context.Context, uuid string) (string, error) { return l.XML(ctx, uuid) }

// Resize implements hypervisor.Hypervisor. The machines of a site are as large as they were started.
func (l *Libvirt) Resize(ctx context.Context, uuid string, epoch uint64, _ int64, _ int) error {
	return l.change(ctx, "resize", uuid, func() error {
		if _, err := l.At.find(uuid, epoch); err != nil {
			return err
		}
		return fmt.Errorf("%w: the size of a guest that runs", hypervisor.ErrUnsupported)
	})
}

// ChangeDevice implements hypervisor.Hypervisor. The machines of a site have no devices that anybody changes.
func (l *Libvirt) ChangeDevice(ctx context.Context, uuid string, epoch uint64, change hypervisor.Change, _ string) error {
	return l.change(ctx, string(change)+" a device", uuid, func() error {
		if _, err := l.At.find(uuid, epoch); err != nil {
			return err
		}
		return fmt.Errorf("%w: devices of a guest that runs", hypervisor.ErrUnsupported)
	})
}

// Snapshot implements hypervisor.Hypervisor. The machines of a site have no disks of which anybody takes snapshots.
func (l *Libvirt) Snapshot(ctx context.Context, work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) error {
	return l.change(ctx, string(work)+" a snapshot", of.UUID, func() error {
		return fmt.Errorf("%w: snapshots", hypervisor.ErrUnsupported)
	})
}

// Freeze implements hypervisor.Hypervisor. The guests of a site have no agent.
func (l *Libvirt) Freeze(ctx context.Context, uuid string, epoch uint64) error {
	return l.change(ctx, "freeze", uuid, func() error {
		if _, err := l.At.find(uuid, epoch); err != nil {
			return err
		}
		return fmt.Errorf("%w: no guest agent", hypervisor.ErrUnsupported)
	})
}

// Thaw implements hypervisor.Hypervisor.
func (l *Libvirt) Thaw(ctx context.Context, uuid string, epoch uint64) error {
	return l.change(ctx, "thaw", uuid, func() error {
		_, err := l.At.find(uuid, epoch)
		return err
	})
}
