package libvirt

import (
	"context"
	"fmt"
	"slices"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// filePools are the types of pool whose volumes are files: the only ones that can hold thin copies.
var filePools = []string{"dir", "fs", "netfs"}

// CreateVolume implements hypervisor.Storage.
func (h *volumes) CreateVolume(ctx context.Context, volume hypervisor.NewVolume) error {
	err := act(ctx, h.connection, &h.storage, func(conn *libvirtgo.Connect) error {
		var backing *hypervisor.Volume
		if volume.BackingName != "" {
			found, err := h.lookupVolume(ctx, conn, volume.BackingPool, volume.BackingName)
			if err != nil {
				return fmt.Errorf("what it is to be a thin copy of, in pool %s: %w", volume.BackingPool, err)
			}
			backing = &found
		}
		xml, err := volume.XML(backing)
		if err != nil {
			return err
		}
		return h.within(ctx, conn, volume.Pool, func(pool *libvirtgo.StoragePool) error {
			return makeVolume(ctx, pool, volume.Name, xml)
		})
	})
	if err != nil {
		return fmt.Errorf("make volume %s of pool %s: %w", volume.Name, volume.Pool, err)
	}
	return nil
}

// makeVolume makes a volume. That the name is taken libvirt knows from what it remembers, or finds out from the file.
func makeVolume(ctx context.Context, pool *libvirtgo.StoragePool, name, xml string) error {
	kind, err := poolModel(pool)
	if err != nil {
		return err
	}
	if !slices.Contains(filePools, kind.Type) {
		return fmt.Errorf(
			"%w: pool %s is of type %s: Berth makes volumes in pools of type dir, fs or netfs", hypervisor.ErrUnsupported, kind.Name,
			kind.Type,
		)
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
