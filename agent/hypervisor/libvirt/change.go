package libvirt

import (
	"cmp"
	"context"

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
	defer h.guests.news.heard(uuid)
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
