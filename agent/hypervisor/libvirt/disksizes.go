package libvirt

import (
	"context"
	"fmt"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/disksizes"
)

// DiskSizes implements hypervisor.Hypervisor.
func (h *domains) DiskSizes(ctx context.Context, uuid string) (map[string]int64, error) {
	domain, err := h.Lookup(ctx, uuid)
	if err == nil && (domain.State == hypervisor.Shutoff || domain.State == hypervisor.Absent) {
		err = fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, domain.State)
	}
	var sizes map[string]int64
	if err == nil {
		sizes, err = h.diskSizes(ctx, uuid, disksizes.Disks(&domain))
	}
	if err != nil {
		return nil, fmt.Errorf("read how large the disks of domain %s are: %w", uuid, explain(err))
	}
	h.sizes.Told(uuid, sizes)
	return sizes, nil
}

// diskSizes asks a domain for each of some disks. The error is libvirt's own, or errHung. A disk that is gone meanwhile has no size.
func (h *domains) diskSizes(ctx context.Context, uuid string, targets []string) (map[string]int64, error) {
	told, err := h.migrations.atMost(ctx, uuid+" sizes", func(d *libvirtgo.Domain) (any, error) {
		sizes := make(map[string]int64, len(targets))
		for _, target := range targets {
			info, err := d.GetBlockInfo(target, 0)
			if err == nil {
				sizes[target] = int64(info.Capacity)
			} else if !is(err, libvirtgo.ERR_INVALID_ARG) {
				return nil, err
			}
		}
		return sizes, nil
	}, uuid)
	sizes, _ := told.(map[string]int64)
	return sizes, err
}
