package libvirt

import (
	"context"
	"slices"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/statusfiles"
)

// watchDevices hears of devices that have changed, until the context ends. Where libvirt's files cannot be followed such a change is found
// out after guestFresh.
func (h *watcher) watchDevices(ctx context.Context, files statusfiles.Source) {
	var ran hypervisor.RanNews
	statusfiles.Follow(ctx, files, statusfiles.Teller{
		Wrote: func(file statusfiles.File) {
			event, news := ran.In(file.Name, file.Text, file.Found, file.Ended)
			if news && (!file.Ended || !h.logs.Left(event.UUID, event.Name)) {
				h.Publish(event)
			}
		},
		Ask: func(name string) string { return h.documentOf(ctx, name) },
		Changed: func(name, said string) {
			h.look(ctx, false, said, func(conn *libvirtgo.Connect) (*libvirtgo.Domain, error) { return conn.LookupDomainByName(name) })
		},
		Missed: func() {
			ran.Missed()
			h.guests.news.Reconnected()
		},
	}, h.log)
}

// documentOf is libvirt's document of a domain that runs; empty: it has ended, or libvirtd does not tell.
func (h *watcher) documentOf(ctx context.Context, name string) string {
	text, _ := query(ctx, h.connection, func(conn *libvirtgo.Connect) (string, error) { // what cannot be told now is asked for again
		d, err := conn.LookupDomainByName(name)
		if err != nil {
			return "", err
		}
		defer free(d)
		return d.GetXMLDesc(0)
	})
	return text
}

// askJobs is between two looks at domains that others have jobs of. libvirt writes down that a job ends a moment before it has ended.
const askJobs = 2 * time.Second

// watchJobs sees jobs of others end, until the context does.
func (h *watcher) watchJobs(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(askJobs):
		}
		for _, uuid := range h.migrations.others.Due(time.Now()) {
			h.look(ctx, true, "", func(conn *libvirtgo.Connect) (*libvirtgo.Domain, error) { return lookup(conn, uuid) })
		}
	}
}

// look tells of the devices and jobs of a domain if they have changed, and it is known already or Berth's. One that has just come is not
// known yet, but was listed perhaps: what is told of Berth's then is what it has now. Said is its document, if that was just read.
func (h *watcher) look(ctx context.Context, due bool, said string, find func(*libvirtgo.Connect) (*libvirtgo.Domain, error)) {
	now, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (now hypervisor.Domain, err error) {
		d, err := find(conn)
		if err != nil {
			return now, err
		}
		defer free(d)
		if now.Name, err = d.GetName(); err != nil {
			return now, err
		}
		if _, now.Managed, err = markOf(d); err != nil {
			return now, err
		}
		if now.UUID, err = d.GetUUIDString(); err == nil {
			var attached hypervisor.Attached
			attached, err = attachedBy(d, said)
			now.Devices, now.Bindings = attached.Devices, attached.Bindings
		}
		return now, err
	})
	if err != nil {
		return // it has ended, or libvirtd is away: everything is read anew then
	}
	h.guests.mu.Lock()
	one := h.guests.known[now.UUID]
	same := !now.Managed
	if one != nil {
		same = slices.Equal(one.attached.Devices, now.Devices) && slices.Equal(one.attached.Bindings, now.Bindings)
	}
	h.guests.mu.Unlock()
	if now.Managed {
		h.markJobsOf(ctx, &now)
	}
	if now.Managed && !due {
		h.migrations.others.Heard(now.UUID, time.Now())
	}
	if jobs := now.Managed && h.migrations.others.Tell(now.UUID); !same || jobs {
		h.guests.news.Heard(now.UUID)
		h.Publish(hypervisor.Event{UUID: now.UUID, Name: now.Name, Kind: hypervisor.EventDevices})
	}
}
