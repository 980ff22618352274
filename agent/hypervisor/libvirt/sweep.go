package libvirt

import (
	"context"
	"fmt"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/disksnapshot"
)

// sweepEvery is between two tries to take helpers away of which some are left.
const sweepEvery = 10 * time.Second

// keepSweeping takes away the helpers that a libvirtd or a host left which died, until none is left that nobody works with. They keep disks
// from being used, and end with the connection only if libvirtd outlives it.
func (h *domains) keepSweeping(ctx context.Context) {
	for {
		left, err := h.sweep(ctx)
		if err == nil && left == 0 {
			return
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("what snapshots have left in libvirt could not be taken away", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
	}
}

// sweep does it once. Left is how many helpers this process still works with.
func (h *domains) sweep(ctx context.Context) (left int, err error) {
	err = act(ctx, h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
		all, err := conn.ListAllDomains(0)
		if err != nil {
			return err
		}
		defer freeAll(all)
		for i := range all {
			name, err := all[i].GetName()
			if err != nil {
				return err
			}
			uuid, err := all[i].GetUUIDString()
			if err != nil {
				return err
			}
			if !disksnapshot.IsHelper(name, uuid) {
				continue
			}
			cleaned, err := h.helpers.Clean(uuid, func() error { return cleanHelper(conn, uuid) })
			if err != nil {
				return fmt.Errorf("domain %s: %w", name, err)
			}
			if cleaned {
				h.log.Info("took away a domain that a snapshot had left", "domain", name)
			} else {
				left++
			}
		}
		return nil
	})
	return left, err
}

// usedBy is the error for a volume that a domain has.
func usedBy(conn *libvirtgo.Connect, uuid string) error {
	if d, err := lookup(conn, uuid); err == nil {
		defer free(d)
		if name, err := d.GetName(); err == nil && disksnapshot.IsHelper(name, uuid) {
			return fmt.Errorf("%w: a snapshot of it is worked on by domain %[2]s: if it stays, `virsh destroy %[2]s` and "+
				"`virsh undefine --snapshots-metadata %[2]s`", hypervisor.ErrInUse, name)
		}
	}
	return fmt.Errorf("%w: by domain %s", hypervisor.ErrInUse, uuid)
}
