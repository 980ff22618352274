// Package killer has the VMs of the simulator that take their hosts down.
package killer

import (
	"time"

	"berth/agent/hypervisor"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// Killers are VMs that take their hosts down soon after they have got to run there. FAULTS.md, W14.
type Killers struct {
	Site *machine.Site
	// Term is that of the leader, Away tells whether a host other than one is off, stands still or has no agent, and Because says why
	// guests end from now on, until the function is called that it returns.
	Term    func() uint64
	Away    func(from *machine.Machine) bool
	Because func(cause string) (over func())

	all map[string]*killer // by UUID
}

// killer is one of them, with how many hosts it has had since somebody started it.
type killer struct {
	hosts int
	term  uint64 // in which it took the last one
	turn  int    // grows whenever it gets to run
}

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
		// A leader that has not seen an earlier loss does not count it, and none counts one where others fall silent as well.
		if one.term != k.Term() || k.Away(at) {
			one.hosts = min(one.hosts, 1)
		}
		one.term = k.Term()
		if one.hosts++; one.hosts > 2 {
			s.Broken("killer", d.UUID, "has taken down %d hosts since somebody started it, the last one is %s", one.hosts, at.ID)
		}
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
