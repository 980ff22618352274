package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
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

	// poolCalls bounds the calls to one pool that libvirtd works on at a time. All of them may hang, and it has 20 workers
	// for everything.
	poolCalls = 4
)

// browse runs a question to a storage pool. It may hang with the file system below, so it is never among the queries, whose
// delay means that libvirtd is stuck.
func browse[T any](ctx context.Context, h *connection, do func(context.Context, *libvirtgo.Connect) (T, error)) (T, error) {
	var none T
	if err := h.watch.state(); err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	value, _, err := ask(limited, &h.storage, func(conn *libvirtgo.Connect) (T, error) { return do(limited, conn) })
	if errors.Is(err, errHung) || err != nil && limited.Err() != nil && errors.Is(err, limited.Err()) {
		err = fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
	return value, err
}

// volumes are the storage pools and what is in them.
type volumes struct {
	*connection
	rootDir string             // where the host's files are seen; empty: in /
	gates   sync.Map           // channels by the name of a storage pool: the calls to it that libvirtd works on
	listing singleflight.Group // of storage pools: one at a time, because a file system may hang
	overdue atomic.Bool        // the one under way has been waited for in vain
	// refreshed is when the pools' files were looked at. Only the one listing uses it.
	refreshed time.Time
}

// within runs a call on an active pool, when it is its turn. Turns of two pools are never held at once.
func (h *volumes) within(ctx context.Context, conn *libvirtgo.Connect, name string, call func(*libvirtgo.StoragePool) error) error {
	gate, _ := h.gates.LoadOrStore(name, make(chan struct{}, poolCalls))
	turns := gate.(chan struct{})
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err // nobody waits any more: better not begun than begun and not known of
	}
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
		found, err = hypervisor.VolumeIn(text)
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

// LookupVolume implements hypervisor.Storage.
func (h *volumes) LookupVolume(ctx context.Context, pool, name string) (hypervisor.Volume, error) {
	found, err := browse(ctx, h.connection, func(ctx context.Context, conn *libvirtgo.Connect) (hypervisor.Volume, error) {
		return h.lookupVolume(ctx, conn, pool, name)
	})
	if err != nil {
		return hypervisor.Volume{}, fmt.Errorf("look volume %s of pool %s up: %w", name, pool, err)
	}
	return found, nil
}

func (h *volumes) lookupVolume(ctx context.Context, conn *libvirtgo.Connect, pool, name string) (hypervisor.Volume, error) {
	var found hypervisor.Volume
	err := h.within(ctx, conn, pool, func(p *libvirtgo.StoragePool) error {
		volume, read, err := findVolume(ctx, p, name)
		if err != nil {
			return err
		}
		found = read
		return volume.Free()
	})
	return found, err
}

// VolumesBeside implements hypervisor.Storage.
func (h *volumes) VolumesBeside(ctx context.Context, file string) ([]hypervisor.Volume, error) {
	return browse(ctx, h.connection, func(ctx context.Context, conn *libvirtgo.Connect) (found []hypervisor.Volume, err error) {
		name, err := poolAt(conn, path.Dir(file))
		if err != nil {
			return nil, err
		}
		return found, h.within(ctx, conn, name, func(pool *libvirtgo.StoragePool) error {
			if err := refresh(ctx, pool); err != nil {
				return err
			}
			all, err := pool.ListAllStorageVolumes(0)
			for i := range all {
				if text, gone := all[i].GetXMLDesc(0); gone == nil && err == nil && ctx.Err() == nil {
					var one hypervisor.Volume
					one, err = hypervisor.VolumeIn(text)
					found = append(found, one)
				}
				_ = all[i].Free()
			}
			return cmp.Or(err, ctx.Err())
		})
	})
}

func poolAt(conn *libvirtgo.Connect, folder string) (string, error) {
	pool, err := conn.LookupStoragePoolByTargetPath(folder)
	if err != nil {
		return "", fmt.Errorf("%w: none has the folder %s: %w", hypervisor.ErrNoPool, folder, err)
	}
	defer func() { _ = pool.Free() }()
	return pool.GetName()
}

// change runs a call that changes a volume of an active pool.
func (h *volumes) change(
	ctx context.Context, verb, pool, name string, call func(*libvirtgo.Connect, *libvirtgo.StoragePool) error,
) error {
	err := act(ctx, h.connection, &h.storage, func(conn *libvirtgo.Connect) error {
		return h.within(ctx, conn, pool, func(p *libvirtgo.StoragePool) error { return call(conn, p) })
	})
	if err != nil {
		return fmt.Errorf("%s volume %s of pool %s: %w", verb, name, pool, err)
	}
	return nil
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
func (h *volumes) DeleteVolume(ctx context.Context, pool, name string) error {
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
			return usedBy(conn, uuid)
		}
		return volume.Delete(libvirtgo.STORAGE_VOL_DELETE_NORMAL)
	})
}

// GrowVolume implements hypervisor.Storage.
func (h *volumes) GrowVolume(ctx context.Context, pool, name string, capacity int64) error {
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
				return usedBy(conn, uuid)
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
