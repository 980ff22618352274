package machine

import (
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/jobs"
	"berth/integration/faults/script"
	"berth/integration/faults/stage"
)

// Site is the machines of a run, and the links between them and to the coordinators.
type Site struct {
	*stage.Stage
	Witness Witness
	// StorageFrom is when the storage is there that guests have their disks on.
	StorageFrom time.Time
	machines    []*Machine
	cuts        map[[2]string]int
	moves       []*move
	lost        map[string]bool   // VMs the last answer of whose next migration is lost
	writes      map[string]int    // by disk: how many its guests have made
	files       map[[2]string]int // by what is mounted, and file: the same of those in the pool that is declared as shared
	Wide        bool              // there is such a pool
	Drifts      bool              // people change what guests have, and agents tell it
	Sizes       bool              // people change how large guests are, and agents tell it
	changes     int               // so far
	backing     map[string]string // of files in that pool: what each is a snapshot of
	Local       map[string]bool   // VMs that have a file on their machine's own file system, by UUID
	OldFiles    bool              // every machine has files of the same names in it
}

// Witness is asked and told what agents do to guests, and what becomes of them.
type Witness interface {
	// Ordered is called before an agent's start or resume takes effect.
	Ordered(on *Machine, vm string, epoch uint64, kind string)
	// Ends is called before an agent's shutdown or destroy takes effect.
	Ends(d *Domain, kind string)
	// Asked is called when an agent has a guest restart in place, and Restarted when a guest has.
	Asked(d *Domain)
	Restarted(d *Domain)
	// Stands is called when a guest stands still to be handed over to another machine, with its disks or without.
	Stands(d *Domain, target *Machine, disks bool)
	// Keeps tells whether a disk is to be kept, and Spare whether the copy of it on a machine is one too many: its guest was heard to run
	// on with another one.
	Keeps(disk string) bool
	Spare(disk string, at *Machine) bool
	// Runs is called when a guest has got to run.
	Runs(d *Domain)
	// Excuse tells that a fault has ended the guest.
	Excuse(vm string)
	// Falls is called before a machine loses its power.
	Falls(h *Machine)
	// IsStopping tells whether a VM is to be stopped on a machine.
	IsStopping(vm string, on *Machine) bool
}

// Agent is one life of a machine's agent, as the machine and its libvirt meet it.
type Agent interface {
	jobs.Scheduler
	IsDead() bool
	// Kill ends it as kill -9 does. Another life begins after a while; 0: not by itself.
	Kill(again time.Duration)
	// Stir is called when something has happened that its work may wait for.
	Stir()
	// Saw is an event of libvirt.
	Saw(event hypervisor.Event)
	// Changed is called when a domain has another state.
	Changed(d *Domain)
}

// NewSite is a site without machines.
func NewSite(stage *stage.Stage) *Site {
	return &Site{
		Stage: stage, cuts: map[[2]string]int{}, lost: map[string]bool{}, writes: map[string]int{},
		files: map[[2]string]int{}, backing: map[string]string{},
	}
}

// LoseReply has the last answer of a VM's next migration lost.
func (s *Site) LoseReply(vm string) { s.lost[vm] = true }

// loses tells whether that is this one.
func (s *Site) loses(vm string) bool {
	lost := s.lost[vm]
	delete(s.lost, vm)
	return lost
}

// machine finds one by its ID; nil: there is none.
func (s *Site) machine(id string) *Machine {
	for _, one := range s.machines {
		if one.ID == id {
			return one
		}
	}
	return nil
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// Cut cuts a link for a while.
func (s *Site) Cut(a, b string, lasts time.Duration) {
	if a == b {
		return
	}
	s.cuts[pair(a, b)]++
	s.After(lasts, func() {
		if s.cuts[pair(a, b)] > 0 {
			s.cuts[pair(a, b)]--
		}
	})
}

// IsCut tells whether no message passes a link.
func (s *Site) IsCut(a, b string) bool { return s.cuts[pair(a, b)] > 0 }

// Mend mends all links.
func (s *Site) Mend() { clear(s.cuts) }

// Suspend is the owner who pauses a guest, and lets it go on later.
func (s *Site) Suspend(vm string, lasts time.Duration) {
	for _, on := range s.machines {
		d := on.Domains[vm]
		if d == nil || d.State != hypervisor.Running || !on.Up {
			continue
		}
		d.ByOwner = true
		on.Set(d, hypervisor.Paused, "user")
		s.After(lasts, func() {
			if on.Domains[vm] == d && d.State == hypervisor.Paused {
				d.ByOwner = false
				on.Set(d, hypervisor.Running, "unpaused")
			}
		})
	}
}

// movesOf are the migrations that a machine has a part in.
func (s *Site) movesOf(one *Machine) []*move {
	var all []*move
	for _, m := range s.moves {
		if m.source == one || m.target == one {
			all = append(all, m)
		}
	}
	return all
}

// forget drops the moves that have ended, once there are many.
func (s *Site) forget() {
	if len(s.moves) < 32 {
		return
	}
	s.moves = slices.DeleteFunc(s.moves, func(m *move) bool { return m.over && (m.in == nil || m.in.move != m) })
}

// LoseBoth ends the agent and the libvirtd of a machine together. One of them is back after a while, the other one later.
func LoseBoth(h *Machine, what script.Happening) {
	if !h.On || h.Frozen || h.Agent == nil {
		return
	}
	h.Draw(script.BothAway)
	daemon, agent := what.For, what.For+h.Between(time.Second, 90*time.Second)
	if what.Hard {
		daemon, agent = agent, daemon
	}
	h.Agent.Kill(agent + time.Millisecond)
	h.KillDaemon()
	h.Later(daemon, h.StartDaemon)
}
