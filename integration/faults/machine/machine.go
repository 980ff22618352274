package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/shared/units"
)

// Machine is one that guests run on: its libvirtd, its guests, its disk and its fence device.
type Machine struct {
	*Site
	*disk // of the journal
	*pool
	ID     string
	Memory int64

	Side     string // what it has mounted under the pool that is declared as shared; empty: what most machines have
	Hardware string // its identity, which a machine with a copy of its disk does not have

	On     bool
	Lost   bool // nobody switches it on any more
	Frozen bool
	Held   []func() // what was due while it was frozen
	boot   int      // grows with every boot

	Up     bool // libvirtd
	Hung   bool // it takes calls and does nothing
	daemon int  // grows with every start of libvirtd
	moment chan struct{}
	queue  []func() // calls that nobody waits for any more, and that a daemon which hung may still carry out

	local     map[string]int // of files on its own file system, how much was written to each
	Domains   map[string]*Domain
	left      map[string]*Domain // as they were when they were here last
	saved     saved
	kept      map[string]model.Size // by VM: what somebody has made of the size in the definition that is kept here
	last      []*lastWords
	completed map[string]hypervisor.Job
	Agent     Agent  // nil: none has run yet
	Begin     func() // begins a life of the agent
	armed     armed  // the agent dies at its journal
	Dog       Watchdog
	asked     int // calls of its fence device that are under way
}

// Libvirt is the machine's libvirt as an agent sees it.
func (h *Machine) Libvirt(agent Agent) *Libvirt { return &Libvirt{At: h, agent: agent} }

// Journal is the machine's disk as an agent has it open.
func (h *Machine) Journal(agent Agent) Journal { return Journal{disk: h.disk, agent: agent} }

// NewMachine adds a machine to the site. It is on.
func (s *Site) NewMachine(id string, memory int64) *Machine {
	h := &Machine{
		Site: s, ID: id, Memory: memory, Hardware: "hardware of " + id, On: true, Up: true, moment: make(chan struct{}),
		Domains: map[string]*Domain{}, left: map[string]*Domain{}, completed: map[string]hypervisor.Job{},
		local: map[string]int{}, kept: map[string]model.Size{},
	}
	h.disk = &disk{at: h, buckets: map[string]map[string][]byte{}}
	h.pool = &pool{of: h, volumes: map[string]*volume{}}
	h.Dog.at = h
	s.machines = append(s.machines, h)
	return h
}

// NewClone adds a machine that boots from a copy of another one's disk. Nobody reaches it by the other one's name.
func (s *Site) NewClone(of *Machine) *Machine {
	h := &Machine{
		Site: s, ID: of.ID, Memory: of.Memory, Hardware: "hardware of a clone of " + of.ID, On: true, Up: true, boot: 1000,
		moment: make(chan struct{}), Domains: map[string]*Domain{}, left: map[string]*Domain{}, completed: map[string]hypervisor.Job{},
	}
	h.disk = &disk{at: h, buckets: map[string]map[string][]byte{}}
	h.pool = &pool{of: h, volumes: map[string]*volume{}}
	for name, bucket := range of.disk.buckets {
		h.disk.buckets[name] = maps.Clone(bucket)
	}
	h.Dog.at = h
	return h
}

// EventTakes is how much later than a look shows it an event tells of it.
const EventTakes = 5 * time.Millisecond

// guest is the content of a VM's memory. It has one true copy at any moment.
type guest struct {
	vm      string
	version int // grows whenever the guest gets to run
	running *Domain
}

// Domain is a guest, or a copy of it, on a host.
type Domain struct {
	hypervisor.Domain
	At      *Machine
	xml     string
	guest   *guest
	version int // of the guest, that it is a whole copy of; -1: of none
	move    *move
	ByOwner bool   // paused by its owner
	why     string // it was started, if Berth has not done that
	volumes []string
	BoundAt time.Time // when what binds it began; zero: nothing ever has
	Balloon int64     // memory that its balloon leaves it, in bytes; 0: all
	SizedAt time.Time // when somebody has changed its size last; zero: nobody has

	Forgotten bool // by libvirt, which lists it no more; its process runs on

	restarts int // of its guest, in place
}

// IsWhole tells whether the domain has all that its guest is.
func (d *Domain) IsWhole() bool { return d.version == d.guest.version }

// HasTwin tells whether another domain is a whole copy of the same guest.
func (d *Domain) HasTwin(other *Domain) bool {
	return other != d && other.guest == d.guest && other.IsWhole()
}

// URI is where other daemons reach this one.
func (h *Machine) URI() string { return "qemu+tls://" + h.ID + "/system" }

// Sorted are the host's domains, by UUID.
func (h *Machine) Sorted() []*Domain {
	all := make([]*Domain, 0, len(h.Domains))
	for _, id := range slices.Sorted(maps.Keys(h.Domains)) {
		all = append(all, h.Domains[id])
	}
	return all
}

// LastLeft tells whether a guest left by a migration when it was here last.
func (h *Machine) LastLeft(uuid string) bool {
	was := h.left[uuid]
	return was != nil && h.Domains[uuid] == nil && was.Reason == "migrated"
}

// Capacity is the memory that can be promised.
func (h *Machine) Capacity() units.Bytes { return units.Bytes(h.Memory) }

func (h *Machine) free() int64 {
	free := h.Memory
	for _, d := range h.Domains {
		free -= d.memory()
	}
	return free
}

// stir wakes the calls that wait for the daemon.
func (h *Machine) stir() {
	close(h.moment)
	h.moment = make(chan struct{})
	if h.hasAgent() {
		h.Agent.Stir()
	}
}

// hasAgent tells whether an agent runs on the machine.
func (h *Machine) hasAgent() bool { return h.Agent != nil && !h.Agent.IsDead() }

// changed tells the agent of one domain.
func (h *Machine) changed(d *Domain) {
	if h.Up && !h.Hung && h.Agent != nil && !d.Forgotten {
		h.Agent.Changed(d)
	}
}

// Set gives a domain another state, and watches that no guest runs twice.
func (h *Machine) Set(d *Domain, state hypervisor.State, reason string) {
	h.Note("domain", h.ID, d.UUID, string(state)+" ("+reason+")")
	was := d.State
	d.State, d.Reason = state, reason
	if state == hypervisor.Running || state == hypervisor.PausedMigration {
		tellRun(h, d, false)
	}
	h.tell(d)
	if was == hypervisor.Running && state != hypervisor.Running && d.guest.running == d {
		d.guest.running = nil
	}
	if state == hypervisor.Running && was != hypervisor.Running {
		h.Witness.Runs(d)
		d.guest.version++
		d.version, d.guest.running = d.guest.version, d
		h.write(d)
		writeWide(h, d)
		writeLocal(h, d)
		if h.filled {
			starve(d)
		}
	}
	h.changed(d)
}

// tell lets the agent know a moment later what a domain does, as libvirt's events do: not when the daemon or it is away.
func (h *Machine) tell(d *Domain) {
	event := hypervisor.Event{UUID: d.UUID, Kind: hypervisor.EventSuspended, Detail: d.Reason}
	switch d.State {
	case hypervisor.PausedMigration:
		if d.move != nil && d.move.in == d {
			event.Kind, event.Detail = hypervisor.EventStarted, hypervisor.DetailMigrated
		}
	case hypervisor.Running:
		if event.Kind = hypervisor.EventResumed; d.Reason == "booted" {
			event.Kind = hypervisor.EventStarted
		}
	case hypervisor.Absent, hypervisor.Shutoff:
		event.Kind = hypervisor.EventStopped
	}
	if h.Up && !d.Forgotten {
		h.deliver(event)
	}
}

func (h *Machine) deliver(event hypervisor.Event) {
	agent, daemon := h.Agent, h.daemon
	if agent == nil {
		return
	}
	h.After(EventTakes, func() {
		var arrive func()
		arrive = func() {
			switch {
			case agent.IsDead(), h.daemon != daemon:
			case h.Frozen:
				h.Held = append(h.Held, arrive)
			default:
				agent.Saw(event)
			}
		}
		arrive()
	})
}

// remove takes a domain away: it is transient.
func (h *Machine) remove(d *Domain, reason string) {
	if h.Domains[d.UUID] != d {
		return
	}
	h.Set(d, hypervisor.Absent, reason)
	delete(h.Domains, d.UUID)
	h.left[d.UUID] = d
	keepLast(h, d)
	if d.move != nil {
		d.move.lostDomain(d)
	}
}

// launch makes a domain that begins to run in a while.
func (h *Machine) launch(read hypervisor.Domain, xml string, volumes []string) *Domain {
	d := &Domain{Domain: read, At: h, xml: xml, volumes: volumes}
	d.readSize()
	d.readSizes()
	d.guest = &guest{vm: d.UUID}
	d.State, d.Reason = hypervisor.Starting, "booted"
	h.Domains[d.UUID] = d
	h.Note("domain", h.ID, d.UUID, "starting")
	return d
}

// KillDaemon ends libvirtd. Guests go on; migrations go as table 1.3 says.
func (h *Machine) KillDaemon() {
	if !h.Up {
		return
	}
	h.Note("daemon dies", h.ID, "", "")
	h.Up, h.Hung, h.queue = false, false, nil
	h.daemon++
	for _, d := range h.Sorted() {
		// A launch that libvirtd does not live to see ends with the guest's death.
		if d.State == hypervisor.Starting {
			h.remove(d, "launch lost")
		}
	}
	for _, m := range h.movesOf(h) {
		m.daemonDied(h)
	}
	clear(h.completed)
	h.deliver(hypervisor.Event{Kind: hypervisor.EventDisconnected})
	h.stir()
}

// StartDaemon starts libvirtd, if the machine is on.
func (h *Machine) StartDaemon() {
	if !h.On || h.Up {
		return
	}
	h.Note("daemon is back", h.ID, "", "")
	h.Up = true
	h.deliver(hypervisor.Event{Kind: hypervisor.EventReconnected})
	h.stir()
}

// Heal ends all faults of the machine.
func (h *Machine) Heal() {
	h.armed, h.full = unarmed, false
	h.Thaw()
	h.PowerOn()
	h.Unhang()
	h.StartDaemon()
	endOrphans(h)
	EmptyPool(h)
	for _, uuid := range slices.Sorted(maps.Keys(h.saved)) {
		DropMemory(h, uuid)
	}
	h.Begin()
}

// Hang lets libvirtd take calls and do nothing.
func (h *Machine) Hang() {
	if h.Up {
		h.Note("daemon hangs", h.ID, "", "")
		h.Hung = true
	}
}

// Unhang lets libvirtd go on.
func (h *Machine) Unhang() {
	if !h.Hung {
		return
	}
	h.Note("daemon goes on", h.ID, "", "")
	h.Hung = false
	h.stir()
	// What it has in its queues it carries out a moment after it answers questions again.
	for _, call := range h.queue {
		life := h.daemon
		h.After(h.Between(0, 3*time.Second), func() {
			if h.daemon == life && h.Up && !h.Hung {
				call()
			}
		})
	}
	h.queue = nil
}

// BootID names the time since the machine was switched on last.
func (h *Machine) BootID() string { return fmt.Sprintf("%s-boot-%d", h.ID, h.boot) }

// PowerCut is the host's death.
func (h *Machine) PowerCut() {
	if !h.On {
		return
	}
	h.Witness.Falls(h)
	h.Note("power cut", h.ID, "", "")
	h.On, h.Frozen, h.Held = false, false, nil
	h.Dog.off()
	if h.Agent != nil {
		h.Agent.Kill(0)
	}
	h.KillDaemon()
	for _, d := range h.Sorted() {
		h.Witness.Excuse(d.UUID)
		h.remove(d, "power cut")
	}
}

// PowerOn boots the machine.
func (h *Machine) PowerOn() {
	if h.On || h.Lost {
		return
	}
	h.Note("powers on", h.ID, "", "")
	h.On = true
	h.boot++
	h.StartDaemon()
	h.Begin()
}

// Freeze lets the whole machine stand still.
func (h *Machine) Freeze() {
	if h.On {
		h.Note("freezes", h.ID, "", "")
		h.Frozen = true
		h.Dog.Starve()
	}
}

// Thaw lets a frozen machine go on where it was.
func (h *Machine) Thaw() {
	if !h.Frozen {
		return
	}
	h.Note("thaws", h.ID, "", "")
	h.Frozen = false
	if h.hasAgent() {
		h.Dog.pet()
	}
	for _, what := range h.Held {
		h.After(0, what)
	}
	h.Held = nil
}

// Crash ends one guest, as a crash of its QEMU does.
func (h *Machine) Crash(uuid string) {
	if d := h.Domains[uuid]; d != nil {
		h.Witness.Excuse(uuid)
		h.remove(d, "crashed")
	}
}

// reaches tells whether this host's daemon reaches another's.
func (h *Machine) reaches(other *Machine) bool {
	return h.On && other.On && other.Up && !h.Frozen && !other.Frozen && !h.IsCut(h.ID, other.ID)
}
