package fake

import (
	"context"
	"fmt"
	"strings"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// ChangeDevice implements hypervisor.Hypervisor.
func (h *domains) ChangeDevice(ctx context.Context, uuid string, epoch uint64, change hypervisor.Change, element string) error {
	return h.change(ctx, string(change), 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		if d.State != hypervisor.Running && d.State != hypervisor.Paused {
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
		one, err := domxml.DeviceOf(element)
		if err != nil {
			return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
		}
		there := false
		for i := range d.Devices {
			there = there || d.Devices[i].Kind == one.Kind && strings.EqualFold(d.Devices[i].Key, one.Key)
		}
		switch {
		case change == hypervisor.Attach && there:
			return fmt.Errorf("%w: %s %s", hypervisor.ErrInvalidState, one.Kind, one.Key)
		case change != hypervisor.Attach && !there:
			return fmt.Errorf("%w: no %s %s", hypervisor.ErrInvalidState, one.Kind, one.Key)
		case change == hypervisor.Detach && h.guests[uuid].IgnoresShutdown:
			return nil // one that does not listen keeps it
		}
		edit := domxml.DeviceEdit{Kind: one.Kind, Key: one.Key, XML: element}
		if change == hypervisor.Detach {
			edit.XML = ""
		}
		text, err := domxml.EditDevices(d.xml, []domxml.DeviceEdit{edit})
		if err != nil {
			return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
		}
		after, err := read(text)
		if err != nil {
			return err
		}
		if change != hypervisor.Detach {
			if err := h.storage.checkDisks(after); err != nil {
				return err
			}
		}
		d.xml, d.disks, d.Devices, d.Sources, d.Bindings = text, after.disks, after.Devices, after.Sources, after.Bindings
		h.publish(d, hypervisor.EventDevices, "")
		return nil
	})
}

// Resize implements hypervisor.Hypervisor. A guest that does not listen keeps its memory and its vCPUs.
func (h *domains) Resize(ctx context.Context, uuid string, epoch uint64, memoryBytes int64, vcpus int) error {
	return h.change(ctx, "resize", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		if d.State != hypervisor.Running && d.State != hypervisor.Paused {
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
		if err := hypervisor.WithinMost(memoryBytes, d.MemoryBytes, vcpus, d.mostVCPUs); err != nil {
			return err
		}
		deaf := h.guests[uuid].IgnoresShutdown
		if vcpus > 0 && vcpus < d.VCPUs && deaf {
			return fmt.Errorf("%w: vcpu %d can't be unplugged", hypervisor.ErrInvalidState, vcpus)
		}
		if vcpus > 0 {
			d.VCPUs = vcpus
		}
		if memoryBytes > 0 && (memoryBytes >= d.balloon || !deaf) {
			d.balloon = memoryBytes
		}
		h.publish(d, hypervisor.EventDevices, "")
		return nil
	})
}

// DiskSizes implements hypervisor.Hypervisor.
func (h *domains) DiskSizes(ctx context.Context, uuid string) (map[string]int64, error) {
	end, err := h.enter(ctx, "disk-sizes")
	if err != nil {
		return nil, err
	}
	defer end()
	d, err := h.find(uuid)
	if err == nil && d.State == hypervisor.Shutoff {
		err = fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
	}
	if err != nil {
		return nil, err
	}
	return h.diskSizes(d), nil
}

// diskSizes are those of a domain's disks whose files are volumes; nil: it has none. The wire is locked.
func (h *domains) diskSizes(d *domain) (sizes map[string]int64) {
	for _, disk := range d.disks {
		if v := h.storage.behind(disk.Source); v != nil {
			if sizes == nil {
				sizes = map[string]int64{}
			}
			sizes[disk.Target] = v.capacity
		}
	}
	return sizes
}

// Balloon implements hypervisor.Hypervisor.
func (h *domains) Balloon(ctx context.Context, uuid string) (int64, error) {
	end, err := h.enter(ctx, "balloon")
	if err != nil {
		return 0, err
	}
	defer end()
	d, err := h.find(uuid)
	if err == nil && d.State == hypervisor.Shutoff {
		err = fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
	}
	if err != nil {
		return 0, err
	}
	return d.balloon, nil
}
