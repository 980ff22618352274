package fake

import (
	"bytes"
	"context"
	"fmt"

	"berth/agent/hypervisor"
)

// Snapshot implements hypervisor.Snapshots. The files are volumes of the host's pools.
func (h *Hypervisor) Snapshot(ctx context.Context, work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) error {
	return h.change(ctx, string(work), 0, func() error {
		files, err := h.snapshotFiles(work, of)
		if err != nil {
			return err
		}
		for _, v := range files {
			kept, has := v.snapshots[of.Tag]
			switch {
			case work == hypervisor.SnapshotRestore:
				v.content = bytes.Clone(kept)
			case work == hypervisor.SnapshotForget:
				delete(v.snapshots, of.Tag)
			case !has:
				if v.snapshots == nil {
					v.snapshots = map[string][]byte{}
				}
				v.snapshots[of.Tag] = bytes.Clone(v.content)
			}
		}
		return nil
	})
}

// snapshotFiles are the volumes with these paths, if they can be worked on. The wire is locked.
func (h *Hypervisor) snapshotFiles(work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) (files []*volume, err error) {
	var d *domain
	if of.UUID != "" {
		if d, err = h.findEpoch(of.UUID, of.Epoch); err != nil {
			return nil, err
		}
		if work == hypervisor.SnapshotRestore || d.State != hypervisor.Running && d.State != hypervisor.Paused {
			return nil, fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
	}
	for _, file := range of.Files {
		v := h.behind(hypervisor.Source{Path: file})
		if v == nil || d != nil && h.users()[file] != of.UUID {
			return nil, fmt.Errorf("%w: %s", hypervisor.ErrNoVolume, file)
		}
		if v.format != hypervisor.FormatQCOW2 {
			return nil, fmt.Errorf("%w: %s is of format %s", hypervisor.ErrUnsupported, file, v.format)
		}
		for _, host := range h.wire.hosts {
			if d == nil && host.runsWith(v) {
				return nil, fmt.Errorf("%w: a guest on %s runs with %s", hypervisor.ErrInUse, host.Name, file)
			}
		}
		if _, has := v.snapshots[of.Tag]; work == hypervisor.SnapshotRestore && !has {
			return nil, fmt.Errorf("%w: %s has no snapshot %s", hypervisor.ErrNoVolume, file, of.Tag)
		}
		files = append(files, v)
	}
	return files, nil
}

// Tags are how many snapshots a volume has.
func (h *storage) Tags(pool, name string) int {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	return len(h.pools[pool].store.volumes[name].snapshots)
}

// Freeze implements hypervisor.Snapshots.
func (h *domains) Freeze(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "freeze", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err == nil && (!h.guests[uuid].Agent || d.State != hypervisor.Running) {
			err = fmt.Errorf("%w: its guest agent does not answer", hypervisor.ErrUnsupported)
		}
		if err == nil {
			d.frozen = true
		}
		return err
	})
}

// Thaw implements hypervisor.Snapshots.
func (h *domains) Thaw(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "thaw", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err == nil && !h.guests[uuid].Agent {
			err = fmt.Errorf("%w: its guest agent does not answer", hypervisor.ErrUnsupported)
		}
		if err == nil {
			d.frozen = false
		}
		return err
	})
}

// IsFrozen implements hypervisor.Snapshots.
func (h *domains) IsFrozen(ctx context.Context, uuid string) (bool, error) {
	end, err := h.enter(ctx, "is frozen")
	if err != nil {
		return false, err
	}
	defer end()
	d, err := h.find(uuid)
	if err == nil && (!h.guests[uuid].Agent || d.State != hypervisor.Running) {
		err = fmt.Errorf("%w: its guest agent does not answer", hypervisor.ErrUnsupported)
	}
	return err == nil && d.frozen, err
}

// Frozen tells whether the file systems of a guest stand still.
func (h *domains) Frozen(uuid string) bool {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	d := h.all[uuid]
	return d != nil && d.frozen
}
