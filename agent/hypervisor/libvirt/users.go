package libvirt

import (
	"context"
	"fmt"
	"path"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// VolumesInUse implements hypervisor.Storage.
func (h *volumes) VolumesInUse(ctx context.Context) (map[string]string, error) {
	users, err := browse(ctx, h.connection, func(_ context.Context, conn *libvirtgo.Connect) (map[string]string, error) {
		return usersOf(conn)
	})
	if err != nil {
		return nil, fmt.Errorf("read which volumes are in use: %w", err)
	}
	return users, nil
}

// usersOf reads the disks of every domain, those of its definition too.
func usersOf(conn *libvirtgo.Connect) (map[string]string, error) {
	all, err := conn.ListAllDomains(0)
	if err != nil {
		return nil, err
	}
	defer freeAll(all)
	users := map[string]string{}
	folders := map[string]string{}
	for i := range all {
		uuid, err := all[i].GetUUIDString()
		if err != nil {
			return nil, err
		}
		for _, flags := range []libvirtgo.DomainXMLFlags{0, libvirtgo.DOMAIN_XML_INACTIVE} {
			xml, err := all[i].GetXMLDesc(flags)
			if is(err, libvirtgo.ERR_NO_DOMAIN) {
				break // it ended while we looked
			}
			if err != nil {
				return nil, err
			}
			disks, err := hypervisor.Disks(xml)
			if err != nil {
				return nil, fmt.Errorf("domain %s: %w", uuid, err)
			}
			for _, disk := range disks {
				for _, source := range append(disk.Others, disk.Source) {
					where, err := pathOf(conn, folders, source)
					if err != nil {
						return nil, err
					}
					if where != "" {
						users[where] = uuid
					}
				}
			}
		}
	}
	return users, nil
}

// pathOf is where a source is, or empty if it is nowhere on this node. folders remembers where pools are. The file is not looked at.
func pathOf(conn *libvirtgo.Connect, folders map[string]string, source hypervisor.Source) (string, error) {
	if source.Pool == "" {
		if source.Path == "" {
			return "", nil
		}
		return path.Clean(source.Path), nil
	}
	folder, known := folders[source.Pool]
	if !known {
		pool, err := conn.LookupStoragePoolByName(source.Pool)
		if is(err, libvirtgo.ERR_NO_STORAGE_POOL) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		defer func() { _ = pool.Free() }()
		model, err := poolModel(pool)
		if err != nil {
			return "", err
		}
		if model.Target != nil {
			folder = model.Target.Path
		}
		folders[source.Pool] = folder
	}
	return path.Join(folder, source.Volume), nil
}

// GrowDisk implements hypervisor.Storage.
func (h *volumes) GrowDisk(ctx context.Context, uuid, volume string, capacity int64) error {
	err := act(ctx, h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
		d, err := lookup(conn, uuid)
		if err != nil {
			return err
		}
		defer free(d)
		target, err := targetOf(conn, d, volume)
		if err != nil {
			return err
		}
		info, err := d.GetBlockInfo(target, 0)
		if err != nil {
			return err
		}
		if info.Capacity >= uint64(capacity) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return d.BlockResize(target, sectors(capacity), libvirtgo.DOMAIN_BLOCK_RESIZE_BYTES)
	})
	if err != nil {
		return fmt.Errorf("grow a disk of domain %s: %w", uuid, err)
	}
	return nil
}

// targetOf is the name of the disk that has its content at a path.
func targetOf(conn *libvirtgo.Connect, d *libvirtgo.Domain, volume string) (string, error) {
	xml, err := d.GetXMLDesc(0)
	if err != nil {
		return "", err
	}
	disks, err := hypervisor.Disks(xml)
	if err != nil {
		return "", err
	}
	for _, disk := range disks {
		where, err := pathOf(conn, map[string]string{}, disk.Source)
		if err != nil {
			return "", err
		}
		if where == path.Clean(volume) {
			return disk.Target, nil
		}
	}
	return "", fmt.Errorf("%w: no disk of it is %s", hypervisor.ErrNoVolume, volume)
}
