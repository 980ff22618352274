package faults

import (
	"time"

	"berth/agent/hypervisor"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// killers are VMs that take their hosts down soon after they have got to run there, and how many hosts each has had since somebody
// started it. FAULTS.md, W14.
type killers map[string]*killer // by UUID

type killer struct {
	hosts int
	term  uint64 // in which it took the last one
	turn  int    // grows whenever it gets to run
}

// becomeKiller lets a VM take every host down from now on, beginning with the one that it is on.
func (w *World) becomeKiller(what script.Happening, _ *host) {
	vm := uuidOf(vmName(what.VM))
	if w.killers[vm] != nil {
		return
	}
	w.killers[vm] = &killer{}
	for _, h := range w.hosts {
		if d := h.Domains[vm]; d != nil && d.State == hypervisor.Running {
			w.killSoon(d)
		}
	}
}

// killSoon lets a guest that has got to run take its host down, if that is what it does.
func (w *World) killSoon(d *machine.Domain) {
	k := w.killers[d.UUID]
	if k == nil {
		return
	}
	k.turn++
	turn, at := k.turn, d.At
	w.Later(w.Between(100*time.Millisecond, 20*time.Second), func() {
		if k.turn != turn || at.Domains[d.UUID] != d || d.State != hypervisor.Running {
			return
		}
		w.Draw(script.Killer)
		// A leader that has not seen an earlier loss does not count it, and none counts one where others fall silent as well.
		if k.term != w.term || w.othersAreAway(at) {
			k.hosts = min(k.hosts, 1)
		}
		k.term = w.term
		if k.hosts++; k.hosts > 2 {
			w.Broken("killer", d.UUID, "has taken down %d hosts since somebody started it, the last one is %s", k.hosts, at.ID)
		}
		defer w.because("killer")()
		at.PowerCut()
		w.Later(w.Between(10*time.Second, 4*time.Minute), at.PowerOn)
	})
}

// spareKiller is somebody's word that a VM is to be started: what it takes down from now on is theirs.
func (w *World) spareKiller(vm string) {
	if k := w.killers[vm]; k != nil {
		k.hosts = 0
	}
}

// othersAreAway tells whether a host other than one is off, stands still or has no agent.
func (w *World) othersAreAway(from *machine.Machine) bool {
	for _, h := range w.hosts {
		if h.Machine != from && (!h.On || h.Frozen || h.life == nil || h.life.dead || h.life.session == nil) {
			return true
		}
	}
	return false
}
