// Package disksizes keeps how large the disks are that guests run with. libvirt tells nobody that somebody has resized one, and to ask
// waits for the guest's process. So guests are asked one after the other, rarely and beside the listings, which take what was told last.
package disksizes

import (
	"context"
	"slices"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Fresh is how long what a guest has told counts. Each question is a round trip to QEMU, and who goes by a size asks for it now.
const Fresh = 10 * time.Minute

// Kept is what guests have told. The zero value is ready.
type Kept struct {
	mu      sync.Mutex
	guests  map[string]*guest // by UUID
	publish func(hypervisor.Event)
}

// guest is one that runs, and is Berth's.
type guest struct {
	name    string
	epoch   uint64
	devices []domxml.Device
	asked   time.Time        // zero: not yet
	sizes   map[string]int64 // bytes, by target; nil: it has not told
}

// Ask is a guest to be asked.
type Ask struct {
	UUID  string
	Disks []string // targets
}

// Pauses of Watch: while nobody is to be asked, and between two guests, so that the others who ask libvirtd hardly notice.
const (
	idle    = 2 * time.Second
	between = 20 * time.Millisecond
)

// Watch asks guests when it is time, until the context ends. Ask gives the sizes of the disks of a guest in bytes, by target. That somebody
// has resized one is published.
func (k *Kept) Watch(
	ctx context.Context, ask func(ctx context.Context, uuid string, targets []string) (map[string]int64, error),
	publish func(hypervisor.Event),
) {
	k.mu.Lock()
	k.publish = publish
	k.mu.Unlock()
	for ctx.Err() == nil {
		pause := idle
		if one, due := k.Due(time.Now()); due {
			pause = between
			if sizes, err := ask(ctx, one.UUID, one.Disks); err == nil {
				k.Told(one.UUID, sizes)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Take fills in what is known of domains, which are all that there are. What is not among them is forgotten.
func (k *Kept) Take(domains []hypervisor.Domain) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.guests
	k.guests = make(map[string]*guest, len(known))
	for i := range domains {
		d := &domains[i]
		if !d.Managed || d.State != hypervisor.Running && d.State != hypervisor.Paused || len(disksOf(d.Devices)) == 0 {
			continue
		}
		one := known[d.UUID]
		if one == nil || !one.is(d) {
			one = &guest{name: d.Name, epoch: d.Epoch, devices: d.Devices}
		}
		k.guests[d.UUID] = one
		d.DiskSizes = one.sizes
	}
}

// Fill fills in what is known of one domain.
func (k *Kept) Fill(d *hypervisor.Domain) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.guests[d.UUID]; one != nil && d.Managed && one.is(d) {
		d.DiskSizes = one.sizes
	}
}

// is tells whether a domain is this guest, with the disks that it had.
func (g *guest) is(d *hypervisor.Domain) bool {
	return g.epoch == d.Epoch && slices.Equal(g.devices, d.Devices)
}

// Due is the guest that is to be asked now, if one is: the one that has waited longest. It is not due again before it counts as old,
// whether it answers or not.
func (k *Kept) Due(now time.Time) (ask Ask, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var first *guest
	for uuid, one := range k.guests {
		if now.Sub(one.asked) >= Fresh && (first == nil || one.asked.Before(first.asked)) {
			first, ask.UUID = one, uuid
		}
	}
	if first == nil {
		return Ask{}, false
	}
	first.asked = now
	ask.Disks = disksOf(first.devices)
	return ask, true
}

// Told takes in how large the disks of a guest are, by target. If they were known to be otherwise, that is published.
func (k *Kept) Told(uuid string, sizes map[string]int64) {
	k.mu.Lock()
	one, publish, news := k.guests[uuid], k.publish, false
	if one != nil {
		for target, size := range sizes {
			was, known := one.sizes[target]
			news = news || known && was != size
		}
		one.sizes = sizes // a new one each time: reports have the old one
	}
	k.mu.Unlock()
	if news && publish != nil {
		publish(hypervisor.Event{UUID: uuid, Name: one.name, Kind: hypervisor.EventDevices})
	}
}

// disksOf are the targets of those disks among devices that are neither empty nor drives for media.
func disksOf(devices []domxml.Device) (targets []string) {
	for i := range devices {
		d := &devices[i]
		if d.Kind == domxml.DiskDevice && !d.Media && (d.Source != (domxml.Source{}) || d.Network != "") {
			targets = append(targets, d.Key)
		}
	}
	return targets
}

// Disks are the targets of the disks of a domain that have a size.
func Disks(d *hypervisor.Domain) []string { return disksOf(d.Devices) }
