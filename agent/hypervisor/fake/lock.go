package fake

import (
	"context"
	"errors"

	"berth/agent/hypervisor"
)

// SetLocks tells whether the host's locks reach the others, and theirs this one: a file system that is mounted with locks of its own
// does not pass them on.
func (h *storage) SetLocks(cross bool) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.noLocks = !cross
}

// HoldLock implements hypervisor.Storage.
func (h *storage) HoldLock(ctx context.Context, pool, name string) (func(context.Context) error, error) {
	remove := func(ctx context.Context) error {
		err := h.DeleteVolume(ctx, pool, name)
		if errors.Is(err, hypervisor.ErrNoVolume) {
			return nil
		}
		return err
	}
	if err := remove(ctx); err != nil {
		return nil, err
	}
	err := h.change(ctx, "hold-lock", 0, func() error {
		return h.add(pool, &volume{
			name: name, format: hypervisor.FormatRaw, capacity: 4096, lockedBy: h,
		})
	})
	if err != nil {
		return nil, err
	}
	return remove, nil
}

// LockHeld implements hypervisor.Storage.
func (h *storage) LockHeld(ctx context.Context, pool, name string) (bool, error) {
	end, err := h.enter(ctx, "lock-held")
	if err != nil {
		return false, err
	}
	defer end()
	_, v, err := h.volume(pool, name)
	if err != nil {
		return false, err
	}
	for _, host := range h.wire.hosts {
		if (host.storage == h || !host.noLocks && !h.noLocks) && (v.lockedBy == host.storage || host.runsWith(v)) {
			return true, nil
		}
	}
	return false, nil
}

// runsWith tells whether a guest runs on the host with a volume as its disk. The wire is locked.
func (h *storage) runsWith(v *volume) bool {
	for _, d := range h.domains.all {
		for _, disk := range d.disks {
			if d.State != hypervisor.Shutoff && h.behind(disk.Source) == v {
				return true
			}
		}
	}
	return false
}
