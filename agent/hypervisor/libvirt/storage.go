package libvirt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
)

const (
	// storageTimeout is how long a question to a pool may take: refreshing one opens every file in it.
	storageTimeout = 30 * time.Second

	sectorSize = 512 // QEMU counts the size of a disk in these

	refreshPause    = 50 * time.Millisecond
	refreshPatience = 10 * time.Second
)

// filePools are the types of pool whose volumes are files: the only ones that can hold thin copies.
var filePools = []string{"dir", "fs", "netfs"}

// browse runs a question to a storage pool. It may hang with the file system below, so it is never among the queries, whose
// delay means that libvirtd is stuck.
func browse[T any](ctx context.Context, h *Hypervisor, do func(*libvirtgo.Connect) (T, error)) (T, error) {
	var none T
	if err := h.watch.state(); err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	value, _, err := ask(limited, &h.storage, do)
	if errors.Is(err, errHung) || err != nil && limited.Err() != nil && errors.Is(err, limited.Err()) {
		err = fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
	return value, err
}

// within runs a call on an active pool.
func within(conn *libvirtgo.Connect, name string, call func(*libvirtgo.StoragePool) error) error {
	pool, err := conn.LookupStoragePoolByName(name)
	if is(err, libvirtgo.ERR_NO_STORAGE_POOL) {
		return fmt.Errorf("%w: %q: define it, or see `virsh pool-list --all`", hypervisor.ErrNoPool, name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = pool.Free() }()
	active, err := pool.IsActive()
	if err != nil {
		return err
	}
	if !active {
		return fmt.Errorf("%w: %q is not active: start it with `virsh pool-start %s`", hypervisor.ErrNoPool, name, name)
	}
	return call(pool)
}

// refresh makes libvirt look at the pool's files again. It refuses while it makes a volume there, which takes a moment.
func refresh(ctx context.Context, pool *libvirtgo.StoragePool) error {
	for begin := time.Now(); ; {
		err := pool.Refresh(0)
		if !is(err, libvirtgo.ERR_INTERNAL_ERROR) || time.Since(begin) > refreshPatience {
			return judgeRefresh(pool, err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(refreshPause):
		}
	}
}

// judgeRefresh knows that libvirt stops a pool that it cannot read any more.
func judgeRefresh(pool *libvirtgo.StoragePool, err error) error {
	if err == nil {
		return nil
	}
	if active, activeErr := pool.IsActive(); activeErr == nil && !active {
		name, _ := pool.GetName() // only for people
		return fmt.Errorf("%w: %q has stopped: %w", hypervisor.ErrNoPool, name, explain(err))
	}
	return err
}

// findVolume looks a volume up and at its file. What libvirt remembers may be old, because other nodes work in a shared
// pool too. The caller frees it.
func findVolume(ctx context.Context, pool *libvirtgo.StoragePool, name string) (*libvirtgo.StorageVol, hypervisor.Volume, error) {
	if volume, found, err := lookAt(pool, name); err == nil {
		return volume, found, nil
	}
	if err := refresh(ctx, pool); err != nil {
		return nil, hypervisor.Volume{}, err
	}
	volume, found, err := lookAt(pool, name)
	if is(err, libvirtgo.ERR_NO_STORAGE_VOL) {
		err = fmt.Errorf("%w: %s", hypervisor.ErrNoVolume, name)
	}
	return volume, found, err
}

func lookAt(pool *libvirtgo.StoragePool, name string) (*libvirtgo.StorageVol, hypervisor.Volume, error) {
	var found hypervisor.Volume
	volume, err := pool.LookupStorageVolByName(name)
	if err != nil {
		return nil, found, err
	}
	text, err := volume.GetXMLDesc(0)
	if err == nil {
		found, err = readVolume(text)
	}
	if err == nil {
		found.Pool, err = pool.GetName()
	}
	if err != nil {
		_ = volume.Free()
		return nil, found, err
	}
	return volume, found, nil
}

func readVolume(text string) (hypervisor.Volume, error) {
	var model libvirtxml.StorageVolume
	if err := model.Unmarshal(text); err != nil {
		return hypervisor.Volume{}, err
	}
	volume := hypervisor.Volume{Name: model.Name, Path: model.Key}
	if model.Target != nil {
		volume.Path = model.Target.Path
		if model.Target.Format != nil {
			volume.Format = model.Target.Format.Type
		}
	}
	if model.Capacity != nil {
		volume.CapacityBytes = int64(model.Capacity.Value)
	}
	if model.Allocation != nil {
		volume.AllocationBytes = int64(model.Allocation.Value)
	}
	if model.BackingStore != nil {
		volume.BackingPath = model.BackingStore.Path
	}
	return volume, nil
}

// LookupVolume implements hypervisor.Storage.
func (h *Hypervisor) LookupVolume(ctx context.Context, pool, name string) (hypervisor.Volume, error) {
	found, err := browse(ctx, h, func(conn *libvirtgo.Connect) (hypervisor.Volume, error) {
		var found hypervisor.Volume
		err := within(conn, pool, func(p *libvirtgo.StoragePool) error {
			volume, read, err := findVolume(ctx, p, name)
			if err != nil {
				return err
			}
			found = read
			return volume.Free()
		})
		return found, err
	})
	if err != nil {
		return hypervisor.Volume{}, fmt.Errorf("look volume %s of pool %s up: %w", name, pool, err)
	}
	return found, nil
}

// change runs a call that changes a volume of an active pool.
func (h *Hypervisor) change(ctx context.Context, verb, pool, name string, call func(*libvirtgo.Connect, *libvirtgo.StoragePool) error) error {
	err := act(ctx, h, &h.storage, func(conn *libvirtgo.Connect) error {
		return within(conn, pool, func(p *libvirtgo.StoragePool) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return call(conn, p)
		})
	})
	if err != nil {
		return fmt.Errorf("%s volume %s of pool %s: %w", verb, name, pool, err)
	}
	return nil
}

// CreateVolume implements hypervisor.Storage.
func (h *Hypervisor) CreateVolume(ctx context.Context, volume hypervisor.NewVolume) error {
	return h.change(ctx, "make", volume.Pool, volume.Name, func(conn *libvirtgo.Connect, pool *libvirtgo.StoragePool) error {
		var backing *hypervisor.Volume
		if volume.BackingName != "" {
			err := within(conn, volume.BackingPool, func(p *libvirtgo.StoragePool) error {
				v, found, err := findVolume(ctx, p, volume.BackingName)
				if err != nil {
					return fmt.Errorf("what it is to be a thin copy of, in pool %s: %w", volume.BackingPool, err)
				}
				backing = &found
				return v.Free()
			})
			if err != nil {
				return err
			}
		}
		xml, err := volumeXML(volume, backing)
		if err != nil {
			return err
		}
		return makeVolume(ctx, pool, volume.Name, xml)
	})
}

// volumeXML describes a new volume; backing is what it is a thin copy of, or nil. Nothing of it is allocated beforehand.
func volumeXML(volume hypervisor.NewVolume, backing *hypervisor.Volume) (string, error) {
	model := libvirtxml.StorageVolume{
		Name:       volume.Name,
		Capacity:   &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: uint64(volume.CapacityBytes)},
		Allocation: &libvirtxml.StorageVolumeSize{Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: volume.Format}},
	}
	switch {
	case volume.CapacityBytes <= 0:
		return "", fmt.Errorf("%w: a volume of %d bytes", hypervisor.ErrUnsupported, volume.CapacityBytes)
	case volume.Format == hypervisor.FormatQCOW2:
		model.Target.Compat = "1.1" // libvirt's default is that of 2010, without cheap discards
	case volume.Format != hypervisor.FormatRaw:
		return "", fmt.Errorf("%w: format %q: write raw or qcow2", hypervisor.ErrUnsupported, volume.Format)
	}
	if backing != nil {
		switch {
		case volume.Format != hypervisor.FormatQCOW2:
			return "", fmt.Errorf("%w: a thin copy of format %s: write qcow2", hypervisor.ErrUnsupported, volume.Format)
		case volume.BackingFormat != hypervisor.FormatRaw && volume.BackingFormat != hypervisor.FormatQCOW2:
			return "", fmt.Errorf("%w: a thin copy of a volume of format %q: write raw or qcow2", hypervisor.ErrUnsupported, volume.BackingFormat)
		case volume.CapacityBytes < backing.CapacityBytes:
			return "", fmt.Errorf("%w: %d bytes are less than the %d of %s", hypervisor.ErrUnsupported, volume.CapacityBytes, backing.CapacityBytes, backing.Name)
		}
		model.BackingStore = &libvirtxml.StorageVolumeBackingStore{
			Path: backing.Path, Format: &libvirtxml.StorageVolumeTargetFormat{Type: volume.BackingFormat},
		}
	}
	return model.Marshal()
}

// makeVolume makes a volume. That the name is taken libvirt knows from what it remembers, or finds out from the file.
func makeVolume(ctx context.Context, pool *libvirtgo.StoragePool, name, xml string) error {
	kind, err := poolModel(pool)
	if err != nil {
		return err
	}
	if !slices.Contains(filePools, kind.Type) {
		return fmt.Errorf("%w: pool %s is of type %s: Berth makes volumes in pools of type dir, fs or netfs", hypervisor.ErrUnsupported, kind.Name, kind.Type)
	}
	for attempt := 1; ; attempt++ {
		volume, err := pool.StorageVolCreateXML(xml, 0)
		if err == nil {
			return volume.Free()
		}
		if !is(err, libvirtgo.ERR_STORAGE_VOL_EXIST, libvirtgo.ERR_OPERATION_FAILED) {
			return err
		}
		if refreshErr := refresh(ctx, pool); refreshErr != nil {
			return refreshErr
		}
		if other, _, lookErr := lookAt(pool, name); lookErr == nil {
			_ = other.Free()
			return fmt.Errorf("%w: %s", hypervisor.ErrExists, name)
		}
		if attempt > 1 || !is(err, libvirtgo.ERR_STORAGE_VOL_EXIST) {
			return err
		}
	}
}

func poolModel(pool *libvirtgo.StoragePool) (libvirtxml.StoragePool, error) {
	var model libvirtxml.StoragePool
	text, err := pool.GetXMLDesc(0)
	if err != nil {
		return model, err
	}
	return model, model.Unmarshal(text)
}

// DeleteVolume implements hypervisor.Storage.
func (h *Hypervisor) DeleteVolume(ctx context.Context, pool, name string) error {
	return h.change(ctx, "remove", pool, name, func(conn *libvirtgo.Connect, p *libvirtgo.StoragePool) error {
		volume, found, err := findVolume(ctx, p, name)
		if err != nil {
			return err
		}
		defer func() { _ = volume.Free() }()
		users, err := usersOf(conn)
		if err != nil {
			return err
		}
		if uuid, used := users[path.Clean(found.Path)]; used {
			return fmt.Errorf("%w: by domain %s", hypervisor.ErrInUse, uuid)
		}
		return volume.Delete(libvirtgo.STORAGE_VOL_DELETE_NORMAL)
	})
}

// GrowVolume implements hypervisor.Storage.
func (h *Hypervisor) GrowVolume(ctx context.Context, pool, name string, capacity int64) error {
	return h.change(ctx, "grow", pool, name, func(conn *libvirtgo.Connect, p *libvirtgo.StoragePool) error {
		volume, found, err := findVolume(ctx, p, name)
		if err != nil {
			return err
		}
		defer func() { _ = volume.Free() }()
		if found.CapacityBytes >= capacity {
			return nil
		}
		users, err := usersOf(conn)
		if err != nil {
			return err
		}
		if uuid, used := users[path.Clean(found.Path)]; used {
			active, err := isActive(conn, uuid)
			if err != nil {
				return err
			}
			if active {
				return fmt.Errorf("%w: domain %s runs with it", hypervisor.ErrInUse, uuid)
			}
		}
		return volume.Resize(sectors(capacity), 0)
	})
}

func isActive(conn *libvirtgo.Connect, uuid string) (bool, error) {
	d, err := lookup(conn, uuid)
	if is(err, libvirtgo.ERR_NO_DOMAIN) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer free(d)
	return d.IsActive()
}

// sectors rounds a size up to what QEMU can make of it.
func sectors(bytes int64) uint64 { return uint64(bytes+sectorSize-1) / sectorSize * sectorSize }
