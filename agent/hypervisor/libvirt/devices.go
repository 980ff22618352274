package libvirt

import (
	"context"
	"slices"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/statusfiles"
)

// watchDevices hears of devices that have changed, until the context ends. Where libvirt's folder cannot be watched such a change is found
// out after guestFresh.
func (h *watcher) watchDevices(ctx context.Context, folder string) {
	for told := false; ctx.Err() == nil; {
		began := time.Now()
		err := statusfiles.Watch(ctx, folder, func(name string) { h.written(ctx, name) })
		if !told && ctx.Err() == nil {
			told = true
			h.log.Warn("changed devices are noticed minutes later: libvirt's files cannot be watched", "folder", folder, "error", err)
		}
		if time.Since(began) > maxPause { // it had worked, and something may have been missed
			h.guests.news.reconnected()
		}
		select {
		case <-ctx.Done():
		case <-time.After(maxPause):
		}
	}
}

// written looks at the devices and jobs of a domain whose state libvirt has written down anew, if it is known already.
func (h *watcher) written(ctx context.Context, name string) {
	now, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (now hypervisor.Domain, err error) {
		d, err := conn.LookupDomainByName(name)
		if err != nil {
			return now, err
		}
		defer free(d)
		if now.UUID, err = d.GetUUIDString(); err == nil {
			var attached hypervisor.Attached
			attached, err = attachedTo(d)
			now.Devices, now.Bindings = attached.Devices, attached.Bindings
		}
		return now, err
	})
	if err != nil {
		return // it has ended, or libvirtd is away: everything is read anew then
	}
	h.guests.mu.Lock()
	one := h.guests.known[now.UUID]
	managed := one != nil && one.marked && one.managed
	same := one == nil || slices.Equal(one.attached.Devices, now.Devices) && slices.Equal(one.attached.Bindings, now.Bindings)
	h.guests.mu.Unlock()
	if jobs := managed && h.markJobsOf(ctx, &now); !same || jobs {
		h.guests.news.heard(now.UUID)
		h.Publish(hypervisor.Event{UUID: now.UUID, Name: name, Kind: hypervisor.EventDevices})
	}
}
