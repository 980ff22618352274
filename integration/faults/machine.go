package faults

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/units"
)

// host is a machine: its libvirtd, its guests and its agent.
type host struct {
	world  *World
	id     string
	memory int64

	on     bool
	frozen bool
	later  []func() // what was due while it was frozen
	boot   int      // grows with every boot

	up     bool // libvirtd
	hung   bool // it takes calls and does nothing
	daemon int  // grows with every start of libvirtd
	moment chan struct{}
	queue  []func() // calls that nobody waits for any more, and that a daemon which hung may still carry out

	domains   map[string]*domain
	completed map[string]hypervisor.Job
	disk      *disk
	life      *life
	armed     armed // the agent dies at its journal

	lives int // of its agent, so far
	dog   watchdog
	asked int // calls of its fence device that are under way
}

// eventTakes is how much later than a look shows it an event tells of it.
const eventTakes = 5 * time.Millisecond

// guest is the content of a VM's memory. It has one true copy at any moment.
type guest struct {
	vm      string
	version int // grows whenever the guest gets to run
	running *domain
}

// domain is a guest, or a copy of it, on a host.
type domain struct {
	hypervisor.Domain
	host    *host
	xml     string
	guest   *guest
	version int // of the guest, that it is a whole copy of; -1: of none
	move    *move
	byOwner bool // paused by its owner
	byHand  bool // started beside Berth
}

func (h *host) uri() string { return "sim://" + h.id + "/system" }

// sorted are the host's domains, by UUID.
func (h *host) sorted() []*domain {
	all := make([]*domain, 0, len(h.domains))
	for _, id := range slices.Sorted(maps.Keys(h.domains)) {
		all = append(all, h.domains[id])
	}
	return all
}

// capacity is the memory that can be promised.
func (h *host) capacity() units.Bytes { return units.Bytes(h.memory) }

func (h *host) free() int64 {
	free := h.memory
	for _, d := range h.domains {
		free -= d.MemoryBytes
	}
	return free
}

// stir wakes the calls that wait for the daemon.
func (h *host) stir() {
	close(h.moment)
	h.moment = make(chan struct{})
	if h.life != nil && !h.life.dead {
		h.world.stir(h.life)
	}
}

// set gives a domain another state, and watches that no guest runs twice.
func (h *host) set(d *domain, state hypervisor.State, reason string) {
	w := h.world
	w.note("domain", h.id, d.UUID, string(state)+" ("+reason+")")
	was := d.State
	d.State, d.Reason = state, reason
	h.tell(d)
	if was == hypervisor.Running && state != hypervisor.Running && d.guest.running == d {
		d.guest.running = nil
	}
	if state == hypervisor.Running && was != hypervisor.Running {
		w.runs(d)
	}
	h.changed(d)
}

// tell lets the agent know a moment later what a domain does, as libvirt's events do: not when the daemon or it is away.
func (h *host) tell(d *domain) {
	event := hypervisor.Event{UUID: d.UUID, Kind: hypervisor.EventSuspended, Detail: d.Reason}
	switch d.State {
	case hypervisor.Running:
		event.Kind = hypervisor.EventResumed
	case hypervisor.Absent:
		event.Kind = hypervisor.EventStopped
	}
	if h.up {
		h.deliver(event)
	}
}

func (h *host) deliver(event hypervisor.Event) {
	life, daemon := h.life, h.daemon
	if life == nil || life.jobs == nil {
		return
	}
	h.world.after(eventTakes, func() {
		var arrive func()
		arrive = func() {
			switch {
			case life.dead, h.daemon != daemon:
			case h.frozen:
				h.later = append(h.later, arrive)
			default:
				life.jobs.Saw(event)
			}
		}
		arrive()
	})
}

// remove takes a domain away: it is transient.
func (h *host) remove(d *domain, reason string) {
	if h.domains[d.UUID] != d {
		return
	}
	h.set(d, hypervisor.Absent, reason)
	delete(h.domains, d.UUID)
	if d.move != nil {
		d.move.lostDomain(d)
	}
}

// launch makes a domain that begins to run in a while.
func (h *host) launch(read hypervisor.Domain, xml string) *domain {
	d := &domain{Domain: read, host: h, xml: xml}
	d.guest = &guest{vm: d.UUID}
	d.State, d.Reason = hypervisor.Starting, "booted"
	h.domains[d.UUID] = d
	h.world.note("domain", h.id, d.UUID, "starting")
	return d
}

// killDaemon ends libvirtd. Guests go on; migrations go as table 1.3 says.
func (h *host) killDaemon() {
	if !h.up {
		return
	}
	h.world.note("daemon dies", h.id, "", "")
	h.up, h.hung, h.queue = false, false, nil
	h.daemon++
	for _, d := range h.sorted() {
		// A launch that libvirtd does not live to see ends with the guest's death.
		if d.State == hypervisor.Starting {
			h.remove(d, "launch lost")
		}
	}
	for _, m := range h.world.movesOf(h) {
		m.daemonDied(h)
	}
	clear(h.completed)
	h.deliver(hypervisor.Event{Kind: hypervisor.EventDisconnected})
	h.stir()
}

func (h *host) startDaemon() {
	if !h.on || h.up {
		return
	}
	h.world.note("daemon is back", h.id, "", "")
	h.up = true
	h.deliver(hypervisor.Event{Kind: hypervisor.EventReconnected})
	h.stir()
}

// hang lets libvirtd take calls and do nothing.
func (h *host) hang() {
	if h.up {
		h.world.note("daemon hangs", h.id, "", "")
		h.hung = true
	}
}

func (h *host) unhang() {
	if !h.hung {
		return
	}
	h.world.note("daemon goes on", h.id, "", "")
	h.hung = false
	h.stir()
	// What it has in its queues it carries out a moment after it answers questions again.
	for _, call := range h.queue {
		life := h.daemon
		h.world.after(h.world.between(0, 3*time.Second), func() {
			if h.daemon == life && h.up && !h.hung {
				call()
			}
		})
	}
	h.queue = nil
}

func (h *host) bootID() string { return fmt.Sprintf("%s-boot-%d", h.id, h.boot) }

// powerCut is the host's death.
func (h *host) powerCut() {
	if !h.on {
		return
	}
	w := h.world
	w.note("power cut", h.id, "", "")
	h.on, h.frozen, h.later = false, false, nil
	h.dog.off()
	w.kill(h.life, 0)
	h.killDaemon()
	for _, d := range h.sorted() {
		w.excuse(d.UUID)
		h.remove(d, "power cut")
	}
	w.breakSessions(h, 0)
}

func (h *host) powerOn() {
	if h.on {
		return
	}
	h.world.note("powers on", h.id, "", "")
	h.on = true
	h.boot++
	h.startDaemon()
	h.world.live(h)
}

func (h *host) freeze() {
	if h.on {
		h.world.note("freezes", h.id, "", "")
		h.frozen = true
		h.dog.starve()
	}
}

func (h *host) thaw() {
	if !h.frozen {
		return
	}
	h.world.note("thaws", h.id, "", "")
	h.frozen = false
	if h.life != nil && !h.life.dead {
		h.dog.pet()
	}
	for _, what := range h.later {
		h.world.after(0, what)
	}
	h.later = nil
}

// crash ends one guest, as a crash of its QEMU does.
func (h *host) crash(uuid string) {
	if d := h.domains[uuid]; d != nil {
		h.world.excuse(uuid)
		h.remove(d, "crashed")
	}
}

// reachable tells whether this host's daemon reaches another's.
func (h *host) reaches(other *host) bool {
	return h.on && other.on && other.up && !h.frozen && !other.frozen && !h.world.isCut(h.id, other.id)
}
