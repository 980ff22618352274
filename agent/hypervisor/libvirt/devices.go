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

// written looks at the devices of a domain whose state libvirt has written down anew, if it is known already.
func (h *watcher) written(ctx context.Context, name string) {
	type found struct {
		uuid     string
		attached hypervisor.Attached
	}
	now, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (now found, err error) {
		d, err := conn.LookupDomainByName(name)
		if err != nil {
			return now, err
		}
		defer free(d)
		if now.uuid, err = d.GetUUIDString(); err == nil {
			now.attached, err = attachedTo(d)
		}
		return now, err
	})
	if err != nil {
		return // it has ended, or libvirtd is away: everything is read anew then
	}
	h.guests.mu.Lock()
	one := h.guests.known[now.uuid]
	same := one == nil || slices.Equal(one.attached.Devices, now.attached.Devices)
	h.guests.mu.Unlock()
	if !same {
		h.guests.news.heard(now.uuid)
		h.Publish(hypervisor.Event{UUID: now.uuid, Name: name, Kind: hypervisor.EventDevices})
	}
}
