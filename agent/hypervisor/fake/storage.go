package fake

import (
	"context"
	"fmt"
	"io"
	"path"

	"berth/agent/hypervisor"
)

// CreateVolume implements hypervisor.Storage.
func (h *storage) CreateVolume(ctx context.Context, wanted hypervisor.NewVolume) error {
	return h.change(ctx, "create-volume", 0, func() error {
		v := &volume{name: wanted.Name, format: wanted.Format, capacity: wanted.CapacityBytes}
		if v.capacity <= 0 || v.format != hypervisor.FormatRaw && v.format != hypervisor.FormatQCOW2 {
			return fmt.Errorf("%w: %d bytes of format %q", hypervisor.ErrUnsupported, v.capacity, v.format)
		}
		if wanted.BackingName != "" {
			var err error
			if _, v.backing, err = h.volume(wanted.BackingPool, wanted.BackingName); err != nil {
				return err
			}
			if v.format != hypervisor.FormatQCOW2 || wanted.BackingFormat == "" || v.capacity < v.backing.capacity {
				return fmt.Errorf("%w: a thin copy of %d bytes and format %q", hypervisor.ErrUnsupported, v.capacity, v.format)
			}
		}
		return h.add(wanted.Pool, v)
	})
}

// UploadVolume implements hypervisor.Storage.
func (h *storage) UploadVolume(ctx context.Context, pool, name string, size int64, content io.Reader) error {
	data := make([]byte, max(size, 0))
	_, readErr := io.ReadFull(content, data)
	return h.change(ctx, "upload-volume", 0, func() error {
		if size <= 0 {
			return fmt.Errorf("%w: a volume of %d bytes", hypervisor.ErrUnsupported, size)
		}
		p, err := h.pool(pool)
		if err != nil {
			return err
		}
		if _, taken := p.store.volumes[name]; !taken && readErr != nil {
			return readErr
		}
		v := &volume{name: name, format: hypervisor.FormatRaw, capacity: size, content: data}
		if format, capacity, is := header(data); is {
			v.format, v.capacity = format, capacity
		}
		return h.add(pool, v)
	})
}

// LookupVolume implements hypervisor.Storage.
func (h *storage) LookupVolume(ctx context.Context, pool, name string) (hypervisor.Volume, error) {
	end, err := h.enter(ctx, "lookup-volume")
	if err != nil {
		return hypervisor.Volume{}, err
	}
	defer end()
	p, v, err := h.volume(pool, name)
	if err != nil {
		return hypervisor.Volume{}, err
	}
	return p.describe(v), nil
}

// describe is a volume as the host tells it. The wire is locked.
func (p *pool) describe(v *volume) hypervisor.Volume {
	found := hypervisor.Volume{
		Pool: p.Name, Name: v.name, Format: v.format, Path: path.Join(p.Path, v.name), CapacityBytes: v.capacity,
		AllocationBytes: v.allocated(), ModifiedAt: v.modified,
	}
	if v.backing != nil {
		found.BackingPath, found.Empty = v.backing.path, v.content == nil
	}
	return found
}

// VolumesBeside implements hypervisor.Storage.
func (h *storage) VolumesBeside(ctx context.Context, file string) (found []hypervisor.Volume, err error) {
	end, err := h.enter(ctx, "volumes-beside")
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range h.pools {
		if p.Path != path.Dir(file) || !p.Active {
			continue
		}
		for _, v := range p.store.volumes {
			found = append(found, p.describe(v))
		}
		return found, nil
	}
	return nil, fmt.Errorf("%w: none has the folder %s", hypervisor.ErrNoPool, path.Dir(file))
}

// DeleteVolume implements hypervisor.Storage.
func (h *storage) DeleteVolume(ctx context.Context, pool, name string) error {
	return h.change(ctx, "delete-volume", 0, func() error {
		p, v, err := h.volume(pool, name)
		if err != nil {
			return err
		}
		if uuid, used := h.users()[v.path]; used {
			return fmt.Errorf("%w: by domain %s", hypervisor.ErrInUse, uuid)
		}
		delete(p.store.volumes, name)
		return nil
	})
}

// GrowVolume implements hypervisor.Storage.
func (h *storage) GrowVolume(ctx context.Context, pool, name string, capacity int64) error {
	return h.change(ctx, "grow-volume", 0, func() error {
		_, v, err := h.volume(pool, name)
		if err != nil {
			return err
		}
		if uuid, used := h.users()[v.path]; used && v.capacity < capacity && h.domains.all[uuid].State != hypervisor.Shutoff {
			return fmt.Errorf("%w: domain %s runs with it", hypervisor.ErrInUse, uuid)
		}
		v.capacity = max(v.capacity, capacity)
		return nil
	})
}

// GrowDisk implements hypervisor.Storage.
func (h *storage) GrowDisk(ctx context.Context, uuid, path string, capacity int64) error {
	return h.change(ctx, "grow-disk", 0, func() error {
		d, err := h.domains.find(uuid)
		if err != nil {
			return err
		}
		for _, disk := range d.disks {
			if v := h.behind(disk.Source); v != nil && v.path == path {
				v.capacity = max(v.capacity, capacity)
				return nil
			}
		}
		return fmt.Errorf("%w: no disk of %s is %s", hypervisor.ErrNoVolume, d.Name, path)
	})
}

// VolumesInUse implements hypervisor.Storage.
func (h *storage) VolumesInUse(ctx context.Context) (map[string]string, error) {
	end, err := h.enter(ctx, "volumes")
	if err != nil {
		return nil, err
	}
	defer end()
	return h.users(), nil
}
