// Package killer has the VMs of the simulator that take their hosts down.
package killer

import (
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// Killers are VMs that take their hosts down soon after they have got to run there. FAULTS.md, W14.
type Killers struct {
	Site *machine.Site
	// Records are what is stored, and Term is that of the leader. Fell tells whether a host other than one was heard last at a time, or so
	// long before or after that, and Because says why guests end from now on, until the function is called that it returns.
	Records func() *state.Snapshot
	Term    func() uint64
	Fell    func(but *machine.Machine, at time.Time, within time.Duration) bool
	Because func(cause string) (over func())

	all map[string]*killer // by UUID
}

// killer is one of them, with how many hosts it has had since somebody started it, of those whose loss is counted.
type killer struct {
	hosts int
	term  uint64 // in which it took the last one
	turn  int    // grows whenever it gets to run
}

// together is how close to each other hosts fall silent that fail together, with the time between two reports and their way.
const together = 18 * time.Second

// Become lets a VM take every host down from now on, beginning with the one that it is on.
func (k *Killers) Become(vm string, machines []*machine.Machine) {
	if k.all[vm] != nil {
		return
	}
	if k.all == nil {
		k.all = map[string]*killer{}
	}
	k.all[vm] = &killer{}
	for _, h := range machines {
		if d := h.Domains[vm]; d != nil && d.State == hypervisor.Running {
			k.Runs(d)
		}
	}
}

// Runs lets a guest that has got to run take its host down, if that is what it does.
func (k *Killers) Runs(d *machine.Domain) {
	one, s := k.all[d.UUID], k.Site
	if one == nil {
		return
	}
	one.turn++
	turn, at := one.turn, d.At
	s.Later(s.Between(100*time.Millisecond, 20*time.Second), func() {
		if one.turn != turn || at.Domains[d.UUID] != d || d.State != hypervisor.Running {
			return
		}
		s.Draw(script.Killer)
		if one.term != k.Term() { // a leader that has not seen an earlier loss does not count it
			vm, _ := k.Records().VM(d.UUID)
			one.hosts = min(one.hosts, 1, len(vm.Losses))
		}
		one.term = k.Term()
		if one.hosts++; one.hosts > 2 {
			s.Broken("killer", d.UUID, "has taken down %d hosts since somebody started it, the last one is %s", one.hosts, at.ID)
		}
		struck, term := s.Now, one.term
		// Where others fall silent at that time as well, before or after it, nobody takes it for the guest's doing. That they have is known
		// once they have said nothing for a while.
		s.After(together+model.SuspectAfter, func() {
			if one.term == term && one.hosts > 0 && k.Fell(at, struck, together) {
				one.hosts--
			}
		})
		defer k.Because("killer")()
		at.PowerCut()
		s.Later(s.Between(10*time.Second, 4*time.Minute), at.PowerOn)
	})
}

// Spare is somebody's word that a VM is to be started: what it takes down from now on is theirs.
func (k *Killers) Spare(vm string) {
	if one := k.all[vm]; one != nil {
		one.hosts = 0
	}
}
