package faults

import (
	"io"
	"slices"
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
	"berth/integration/faults/stage"
	"berth/shared/units"
)

// settleLimit is how long operations have to end once the faults have.
const settleLimit = 10 * time.Minute

// Run plays a script to its end, and writes what happens to trace if that is not nil.
func Run(script script.Script, trace io.Writer, bug plant.Bug) Result {
	return play(script, trace, bug).result
}

func play(script script.Script, trace io.Writer, bug plant.Bug) *World {
	w := newWorld(script, trace, bug)
	for _, h := range w.hosts {
		h.live()
	}
	w.elect(0, time.Second)
	for _, h := range script.Happenings {
		w.After(h.At, func() { w.happen(h) })
	}
	w.Play(stage.Began.Add(script.Chaos))
	w.heal()
	w.settle()
	w.rules.judge()
	for _, h := range w.hosts {
		h.life.Kill(0)
	}
	if w.removed != nil {
		w.removed.life.Kill(0)
	}
	w.Play(w.Now)
	w.result.Breaches, w.result.Events, w.result.Lasted, w.result.Hash = w.Breaches, w.Ran, w.Passed(), w.Sum()
	w.result.Drawn = w.Drawn()
	return w
}

// settle plays on until nothing is left to be done, or for as long as operations have to end.
func (w *World) settle() {
	busy := func() bool { return w.leader != nil && w.decide() || !w.isQuiet() }
	for end := w.Now.Add(settleLimit); ; {
		for w.Now.Before(end) && busy() {
			w.Play(w.Now.Add(10 * time.Second))
		}
		// What is still on its way arrives, and changes nothing any more, unless it is somebody's word.
		w.Play(w.Now.Add(time.Minute))
		if !w.Now.Before(end) || !busy() {
			return
		}
	}
}

// isQuiet tells whether nothing is left to be done.
func (w *World) isQuiet() bool {
	if w.leader == nil {
		return false
	}
	snapshot := w.store.Snapshot()
	for _, op := range snapshot.LiveOperations() {
		if op.Result != operation.Parked && !w.operationWaits(snapshot, &op) {
			return false
		}
	}
	return (!w.quarantined() || w.quarantineWaits()) && len(w.rules.waiting()) == 0 && !starving(w) && !w.isComing(snapshot)
}

// isComing tells whether something is to come that records and hosts cannot agree before: a machine that is switched on again, or a time
// that a clock which was ahead has written into a record. No listing is newer until then.
func (w *World) isComing(snapshot *state.Snapshot) bool {
	return slices.ContainsFunc(w.hosts, func(h *host) bool { return !h.On && !h.Lost }) ||
		slices.ContainsFunc(snapshot.VMs(), func(vm model.VM) bool { return vm.StartedAt.After(w.Now) || vm.MovedAt.After(w.Now) })
}

// heal ends all faults.
func (w *World) heal() {
	w.Note("healed", "", "", "")
	w.Quieten()
	w.healed = true
	w.stops, w.sourceDies = nil, nil
	w.StorageFrom = time.Time{}
	w.Mend()
	for _, m := range w.members {
		m.thaw()
		m.alive = true
		m.slow, m.deaf = false, false
		m.setClock()
	}
	for _, h := range w.clones {
		h.endClone()
	}
	for _, h := range w.hosts {
		if h.Lost {
			if !h.forsaken {
				w.After(wordAfter, func() { w.sayOff(h) })
			}
			continue
		}
		h.outdated = false
		h.Heal()
		h.update()
	}
	if w.leader == nil {
		w.elect(time.Second, 3*time.Second)
	}
}

// happen lets one thing happen.
func (w *World) happen(what script.Happening) {
	name := vmName(what.VM)
	h := w.hosts[what.Host%len(w.hosts)]
	w.Note("happens", h.ID, name, string(what.What))
	defer w.because(string(what.What))()
	if !w.wish(what.What, h, name, what.Hard) && !w.troubleHost(what, h, name) {
		w.troubleMembers(what)
	}
}

// wish is what operators ask of whoever takes itself for the leader.
func (w *World) wish(what script.What, h *host, name string, hard bool) bool {
	wishes := map[script.What]func(*member){
		script.Start:   func(m *member) { start(m, name, 2*units.GiB) },
		script.Stop:    func(m *member) { stop(m, name, hard) },
		script.Migrate: func(m *member) { migrate(m, name) },
		script.Reboot:  func(m *member) { reboot(m, name, hard) },
		script.Cancel:  func(m *member) { cancel(m, name) },
		script.Word: func(m *member) {
			if w.fencing && !h.On {
				m.keeper.fenceByHand(h, fencing.FenceNode{ConfirmedOff: true})
			}
		},
		script.FenceHost: func(m *member) {
			if w.fencing {
				m.keeper.fenceByHand(h, fencing.FenceNode{Force: hard})
			}
		},
	}
	do, known := wishes[what]
	if !known {
		return false
	}
	for _, m := range w.members {
		if m.leads() && !m.frozen && (what == script.Word || lead.Quarantined(m.view()) == nil) {
			do(m)
			break
		}
	}
	return true
}

func (w *World) troubleHost(what script.Happening, h *host, name string) bool {
	switch what.What {
	case script.AgentDies:
		h.life.Kill(what.For)
	case script.AgentWrites:
		h.Arm(what.Hard)
	case script.DaemonDies:
		h.KillDaemon()
		w.Later(what.For, h.StartDaemon)
	case script.DaemonHangs:
		h.Hang()
		w.Later(what.For, h.Unhang)
	case script.GuestDies:
		h.Crash(uuidOf(name))
	case script.PowerCut:
		h.PowerCut()
		w.Later(what.For, h.PowerOn)
	case script.Freeze:
		h.Freeze()
		w.Later(what.For, h.Thaw)
	case script.CutHosts:
		w.Cut(h.ID, w.hosts[what.Other%len(w.hosts)].ID, what.For)
	case script.CutMember:
		w.Cut(h.ID, w.members[what.Other%len(w.members)].id, what.For)
		h.breakSession(w.Between(2*time.Second, 25*time.Second))
	case script.CutAll:
		for _, m := range w.members {
			w.Cut(h.ID, m.id, what.For)
		}
		h.breakSession(w.Between(2*time.Second, 25*time.Second))
	case script.Suspend:
		if _, busy := w.store.Snapshot().LiveOperationOf(uuidOf(name)); !busy {
			w.Suspend(uuidOf(name), what.For)
		}
	default:
		return w.troubleBeyond(what, h)
	}
	return true
}

func (w *World) troubleMembers(what script.Happening) {
	if what.What == script.ClockJumps {
		w.members[what.Other%len(w.members)].offset += what.For
		w.Draw(script.Clock)
		return
	}
	if what.What == script.AskStops {
		w.stops = &what
		return
	}
	m := w.leader
	if m == nil {
		return
	}
	switch what.What {
	case script.LeaderDies:
		m.crash()
		w.Later(what.For, func() { m.alive = true })
	case script.LeaderHangs:
		m.freeze()
		w.Later(what.For, func() { m.thaw() })
	case script.LeaderCut:
		m.isolate()
	case script.Transfer:
		if len(w.members) > 1 {
			m.stepDown()
			w.elect(10*time.Millisecond, 500*time.Millisecond)
		}
	}
}

// standStill lets the leader that has just written down that it asks a device stand still, or die.
func (w *World) standStill() {
	m, what := w.leader, w.stops
	if m == nil || what == nil {
		return
	}
	w.stops = nil
	w.After(0, func() {
		if what.Hard {
			m.crash()
			w.Later(what.For, func() { m.alive = true })
		} else {
			m.freeze()
			w.Later(what.For, func() { m.thaw() })
		}
	})
}
