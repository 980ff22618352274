package libvirt

import (
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/guestnews"
	"berth/agent/hypervisor/processes"
	"berth/shared/domxml"
)

// guestFresh is how long what libvirt said of a guest is believed without an event that says otherwise.
const guestFresh = 5 * time.Minute

// guest is what is kept of an active domain, so that a sample need not ask for it: it changes rarely, and then libvirt
// tells. A guest is known by UUID and libvirt's ID, which every start of it changes.
type guest struct {
	id      uint
	version uint64 // of the news that what follows is as new as

	at              time.Time // when the next three and what is attached were read
	memory, balloon int64
	vcpus           int
	mark            domxml.Mark
	managed, marked bool   // marked: these and the reason were read
	reason          string // why it runs
	attached        hypervisor.Attached

	process *processes.Process // nil: not to be seen, and not looked for again

	waits processes.Waits
}

// guests are the active domains by UUID. The lock is held while libvirtd is asked: libvirt's event loop must never wait
// for it, because it is what finds out that libvirtd hangs. What events have to say goes into news.
type guests struct {
	mu    sync.Mutex
	known map[string]*guest
	news  guestnews.News
}

// of gives the guest that a domain is, a new one with the process that is found if need be. The caller holds the lock.
func (g *guests) of(uuid string, id uint, find func() *processes.Process) *guest {
	if g.known == nil {
		g.known = map[string]*guest{}
	}
	version := g.news.Version(uuid)
	one := g.known[uuid]
	switch {
	case one == nil:
	case one.id != id:
		one.drop()
		one = nil
	case one.version != version:
		one.at, one.marked, one.version = time.Time{}, false, version
	}
	if one == nil {
		one = &guest{id: id, version: version, process: find()}
		g.known[uuid] = one
	}
	return one
}

// drop gives the process up, for good.
func (one *guest) drop() {
	if one.process != nil {
		one.process.Close()
		one.process = nil
	}
}

// keep forgets all guests but these. The caller holds the lock.
func (g *guests) keep(present map[string]bool) {
	for uuid, one := range g.known {
		if !present[uuid] {
			one.drop()
			delete(g.known, uuid)
		}
	}
	g.news.Keep(present)
}

// ask reads what a guest is from libvirt, if it is not known or too old.
func (one *guest) ask(d *libvirtgo.Domain, now time.Time) error {
	// libvirt tells nobody that a snapshot was deleted.
	if now.Sub(one.at) < guestFresh && !one.attached.Snapshots() {
		return nil
	}
	info, err := d.GetInfo()
	if err != nil {
		return err
	}
	if one.attached, err = attachedTo(d); err != nil {
		return err
	}
	one.at = now
	one.memory, one.balloon, one.vcpus = int64(info.MaxMem)<<10, int64(info.Memory)<<10, int(info.NrVirtCpu)
	return nil
}

// askMark reads Berth's mark and the reason from libvirt, if they are not known.
func (one *guest) askMark(d *libvirtgo.Domain) (err error) {
	if one.marked {
		return nil
	}
	state, reason, err := d.GetState()
	if err != nil {
		return err
	}
	_, one.reason = stateOf(state, reason)
	one.mark, one.managed, err = markOf(d)
	one.marked = err == nil
	return err
}
