package libvirt

import (
	"cmp"
	"context"
	"fmt"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// ChangeDevice implements hypervisor.Hypervisor.
func (h *domains) ChangeDevice(ctx context.Context, uuid string, epoch uint64, change hypervisor.Change, element string) error {
	return h.on(ctx, &h.calls, string(change)+" a device of", uuid, &epoch, func(d *libvirtgo.Domain) error {
		switch change {
		case hypervisor.Attach:
			return d.AttachDeviceFlags(element, libvirtgo.DOMAIN_DEVICE_MODIFY_LIVE)
		case hypervisor.Detach:
			return d.DetachDeviceFlags(element, libvirtgo.DOMAIN_DEVICE_MODIFY_LIVE)
		default:
			return d.UpdateDeviceFlags(element, libvirtgo.DOMAIN_DEVICE_MODIFY_LIVE)
		}
	})
}

// Resize implements hypervisor.Hypervisor. vCPUs come first: the guest may refuse to give one up. libvirt tells nobody of new ones.
func (h *domains) Resize(ctx context.Context, uuid string, epoch uint64, memoryBytes int64, vcpus int) error {
	defer h.guests.news.Heard(uuid)
	return h.on(ctx, &h.calls, "resize", uuid, &epoch, func(d *libvirtgo.Domain) error {
		most, err := d.GetMaxVcpus()
		info, unknown := d.GetInfo()
		if err = cmp.Or(err, unknown); err == nil {
			err = hypervisor.WithinMost(memoryBytes, int64(info.MaxMem)<<10, vcpus, int(most))
		}
		if err == nil && vcpus > 0 && vcpus != int(info.NrVirtCpu) {
			err = d.SetVcpusFlags(uint(vcpus), libvirtgo.DOMAIN_VCPU_LIVE)
		}
		if err != nil || memoryBytes <= 0 {
			return err
		}
		return d.SetMemoryFlags(uint64(memoryBytes+1023)/1024, libvirtgo.DOMAIN_MEM_LIVE)
	})
}

// Balloon implements hypervisor.Hypervisor. The figure that libvirt keeps itself comes with an event, of which QEMU sends one a second.
func (h *domains) Balloon(ctx context.Context, uuid string) (int64, error) {
	has, _, err := ask(ctx, &h.calls, func(conn *libvirtgo.Connect) (int64, error) {
		d, err := lookup(conn, uuid)
		if err != nil {
			return 0, err
		}
		defer free(d)
		stats, err := d.MemoryStats(uint32(libvirtgo.DOMAIN_MEMORY_STAT_NR), 0)
		if err != nil {
			return 0, err
		}
		for _, one := range stats {
			if one.Tag == int32(libvirtgo.DOMAIN_MEMORY_STAT_ACTUAL_BALLOON) {
				return int64(one.Val) << 10, nil
			}
		}
		return 0, fmt.Errorf("%w: it has no balloon", hypervisor.ErrUnsupported)
	})
	if err != nil {
		return 0, fmt.Errorf("read the balloon of domain %s: %w", uuid, explain(err))
	}
	return has, nil
}
