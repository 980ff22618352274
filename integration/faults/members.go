package faults

import (
	"time"

	"berth/coordinator/control/recovery"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

// noticed is how long a leader that should not lead may take to know it, at most: its peers report every two seconds, and it looks
// every five.
const noticed = 8 * time.Second

// deafNoticed is how long a leader takes to know that no agent reaches it: they have to ask the others twice.
const deafNoticed = 90 * time.Second

// slowDown makes a coordinator's disk slow. A leader that is not alone hands over. FAULTS.md, W21.
func slowDown(w *World, what script.Happening, _ *host) {
	m := w.members[what.Other%len(w.members)]
	if !m.alive || m.slow {
		return
	}
	w.Draw(script.SlowDisk)
	m.slow = true
	w.Later(what.For, func() { m.slow = false })
	w.After(w.Between(time.Second, noticed)*2, func() { m.makeWay(m.slow) })
}

// deafen makes a coordinator's port for agents dead. A leader that is not alone hands over once the others have told it how many agents
// ask them again and again. FAULTS.md, W11.
func deafen(w *World, what script.Happening, _ *host) {
	m := w.members[what.Other%len(w.members)]
	if m.deaf {
		return
	}
	w.Draw(script.DeafLeader)
	m.deaf = true
	w.Later(what.For, func() { m.deaf = false })
	for _, h := range w.hosts {
		if s := m.sessions[h.ID]; s != nil {
			w.After(w.Between(0, 5*time.Second), s.hangUp)
		}
	}
	w.After(deafNoticed, func() { m.makeWay(m.deaf) })
}

// errClock makes a coordinator's clock wrong. Until its peers have told it, it stamps what it commits with that time; then nothing
// more. FAULTS.md, W22.
func errClock(w *World, what script.Happening, _ *host) {
	m := w.members[what.Other%len(w.members)]
	if !m.alive || m.errs {
		return
	}
	w.Draw(script.Clock)
	m.errs = true
	m.offset += script.YearsAhead
	w.Later(what.For, m.setClock)
	w.After(w.Between(time.Second, noticed), func() { m.makeWay(m.errs) })
}

// setClock sets a wrong clock right.
func (m *member) setClock() {
	if m.errs {
		m.errs = false
		m.offset -= script.YearsAhead
	}
}

// restampEvery is shorter than control's: nobody waits for it, and there is no loop that would notice more looks.
const restampEvery = 20 * time.Second

// restamp sets times in records right that a leader with a wrong clock has written. Here what nodes tell is timed by a clock that is
// right (moment), so that is what records are compared with.
func (k *keeper) restamp() {
	if command, some := recovery.Restamp(k.view(), k.world.Now); some && k.world.bug != plant.StampsKept {
		command.Key = k.world.newKey()
		k.try(command, func(bool) {})
	}
}

// makeWay lets another coordinator lead if this one does and should not.
func (m *member) makeWay(should bool) {
	w := m.world
	if should && w.leader == m && !m.frozen && len(w.members) > 1 {
		m.stepDown()
		w.elect(10*time.Millisecond, 500*time.Millisecond)
	}
}
