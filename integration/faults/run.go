package faults

import (
	"fmt"
	"io"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/control/fencing"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// settleLimit is how long operations have to end once the faults have.
const settleLimit = 10 * time.Minute

// Run plays a script to its end, and writes what happens to trace if that is not nil.
func Run(script Script, trace io.Writer, bug Bug) Result {
	return play(script, trace, bug).result
}

func play(script Script, trace io.Writer, bug Bug) *World {
	w := newWorld(script, trace, bug)
	for _, h := range w.hosts {
		w.live(h)
	}
	w.elect(0, time.Second)
	for _, h := range script.Happenings {
		w.after(h.At, func() { w.happen(h) })
	}
	w.play(began.Add(script.Chaos))
	w.heal()
	for end := w.now.Add(settleLimit); w.now.Before(end) && !w.isQuiet(); {
		w.play(w.now.Add(10 * time.Second))
	}
	// What is still on its way arrives, and changes nothing any more.
	w.play(w.now.Add(time.Minute))
	w.judge()
	for _, h := range w.hosts {
		w.kill(h.life, 0)
	}
	w.play(w.now)
	w.result.Events, w.result.Lasted, w.result.Hash = w.ran, w.now.Sub(began), w.hash.Sum64()
	return w
}

// play lets everything happen that is due until then.
func (w *World) play(until time.Time) {
	for w.next(until) {
	}
	w.now = until
}

// isQuiet tells whether nothing is left to be done.
func (w *World) isQuiet() bool {
	if w.leader == nil {
		return false
	}
	for _, op := range w.store.Snapshot().LiveOperations() {
		if op.Result != operation.Parked {
			return false
		}
	}
	return len(w.waiting()) == 0
}

// heal ends all faults.
func (w *World) heal() {
	w.note("healed", "", "", "")
	w.mix = w.mix.quiet()
	w.started, w.stops = w.now, nil
	clear(w.cuts)
	for _, m := range w.members {
		w.thawMember(m)
		m.alive = true
	}
	for _, h := range w.hosts {
		h.armed = unarmed
		h.thaw()
		h.powerOn()
		h.unhang()
		h.startDaemon()
		w.live(h)
	}
	if w.leader == nil {
		w.elect(time.Second, 3*time.Second)
	}
}

// happen lets one thing happen.
func (w *World) happen(what Happening) {
	name := fmt.Sprintf("vm-%d", what.VM)
	h := w.hosts[what.Host%len(w.hosts)]
	w.note("happens", h.id, name, string(what.What))
	if !w.wish(what.What, h, name, what.Hard) && !w.troubleHost(what, h, name) {
		w.troubleMembers(what)
	}
}

// wish is what operators ask of whoever takes itself for the leader.
func (w *World) wish(what What, h *host, name string, hard bool) bool {
	wishes := map[What]func(*member){
		Start:   func(m *member) { m.start(name, 2*units.GiB) },
		Stop:    func(m *member) { m.stop(name, hard) },
		Migrate: func(m *member) { m.migrate(name) },
		Cancel:  func(m *member) { m.cancel(name) },
		Word: func(m *member) {
			if w.fencing && !h.on {
				m.fenceByHand(h, fencing.FenceNode{ConfirmedOff: true})
			}
		},
		FenceHost: func(m *member) {
			if w.fencing {
				m.fenceByHand(h, fencing.FenceNode{Force: hard})
			}
		},
	}
	do, known := wishes[what]
	if !known {
		return false
	}
	for _, m := range w.members {
		if m.leads() && !m.frozen {
			do(m)
			break
		}
	}
	return true
}

// later ends a fault, unless all have ended before.
func (w *World) later(after time.Duration, end func()) {
	w.after(after, func() {
		if w.started.IsZero() {
			end()
		}
	})
}

func (w *World) troubleHost(what Happening, h *host, name string) bool {
	switch what.What {
	case AgentDies:
		w.kill(h.life, what.For)
	case AgentWrites:
		if h.armed = beforeEntry; what.Hard {
			h.armed = afterEntry
		}
	case DaemonDies:
		h.killDaemon()
		w.later(what.For, h.startDaemon)
	case DaemonHangs:
		h.hang()
		w.later(what.For, h.unhang)
	case GuestDies:
		h.crash(w.uuid(name))
	case PowerCut:
		h.powerCut()
		w.later(what.For, h.powerOn)
	case Freeze:
		h.freeze()
		w.later(what.For, h.thaw)
	case CutHosts:
		w.cut(h.id, w.hosts[what.Other%len(w.hosts)].id, what.For)
	case CutMember:
		w.cut(h.id, w.members[what.Other%len(w.members)].id, what.For)
		w.breakSessions(h, w.between(2*time.Second, 25*time.Second))
	case CutAll:
		for _, m := range w.members {
			w.cut(h.id, m.id, what.For)
		}
		w.breakSessions(h, w.between(2*time.Second, 25*time.Second))
	case Suspend:
		w.suspend(w.uuid(name), what.For)
	default:
		return false
	}
	return true
}

func (w *World) troubleMembers(what Happening) {
	if what.What == ClockJumps {
		w.members[what.Other%len(w.members)].offset += what.For
		w.jumped = true
		return
	}
	if what.What == AskStops {
		w.stops = &what
		return
	}
	m := w.leader
	if m == nil {
		return
	}
	switch what.What {
	case LeaderDies:
		w.crashMember(m)
		w.later(what.For, func() { m.alive = true })
	case LeaderHangs:
		w.freezeMember(m)
		w.later(what.For, func() { w.thawMember(m) })
	case LeaderCut:
		w.isolate(m)
	case Transfer:
		if len(w.members) > 1 {
			w.stepDown(m)
			w.elect(10*time.Millisecond, 500*time.Millisecond)
		}
	}
}

// suspend is the owner who pauses a guest that nothing works on, and lets it go on later.
func (w *World) suspend(vm string, lasts time.Duration) {
	if _, busy := w.store.Snapshot().LiveOperationOf(vm); busy {
		return
	}
	for _, h := range w.hosts {
		d := h.domains[vm]
		if d == nil || d.State != hypervisor.Running || !h.up {
			continue
		}
		d.byOwner = true
		h.set(d, hypervisor.Paused, "user")
		w.after(lasts, func() {
			if h.domains[vm] == d && d.State == hypervisor.Paused {
				d.byOwner = false
				h.set(d, hypervisor.Running, "unpaused")
			}
		})
	}
}

func (w *World) cut(a, b string, lasts time.Duration) {
	if a == b {
		return
	}
	w.cuts[pair(a, b)]++
	w.after(lasts, func() {
		if w.cuts[pair(a, b)] > 0 {
			w.cuts[pair(a, b)]--
		}
	})
}
