package faults

import (
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// How often a leader looks, as control does.
const (
	silenceEvery = time.Second
	restartEvery = time.Second
	leaseEvery   = 2 * time.Second
	followEvery  = 5 * time.Second
)

// every does something again and again as long as the member leads.
func (m *member) every(pause time.Duration, do func()) {
	w, term := m.world, m.term
	var due func()
	due = func() {
		w.awake(m, func() {
			if m.term == term {
				do()
				w.after(pause, due)
			}
		})
	}
	w.after(w.between(0, pause), due)
}

// watch does what a leader does about nodes that are silent, and about VMs that are to be highly available.
func (m *member) watch() {
	m.fencer = fencing.NewFencer(m.world.leadsSince(), m.world.newKey)
	m.restarter, m.follower = evidence.Restarter{}, evidence.Follower{}
	m.open, m.asking = 0, map[string]bool{}
	m.every(silenceEvery, m.lookAtSilence)
	m.every(leaseEvery, m.giveLeases)
	m.every(restartEvery, m.restart)
	m.every(followEvery, m.follow)
}

// try commits a command that a loop of the leader has made. While any is under way the loop of silence waits, as control's
// does.
func (m *member) try(command state.Command, done func(stored bool)) {
	m.open++
	m.propose(command, func(result state.Result, err error) {
		m.open--
		if result.Refusal != nil && result.Refusal.Code != state.Stale {
			m.world.broken("refused", command.Kind, "%s", result.Refusal.Message)
		}
		done(err == nil && result.Refusal == nil)
	})
}

func (m *member) lookAtSilence() {
	if m.open > 0 {
		return
	}
	moment := m.moment(m.view())
	for _, notice := range m.fencer.Notice(moment) {
		if m.world.bug == ReturnUnnoticed && len(notice.Back) > 0 {
			continue
		}
		m.try(notice.Command, func(stored bool) {
			if stored && len(notice.Back) > 0 {
				m.wakeAll()
			}
		})
	}
	if m.open > 0 {
		return
	}
	for _, verdict := range m.verdicts(moment) {
		node, _ := moment.Node(verdict.Node)
		switch verdict.Act {
		case evidence.FenceAsk:
			m.askDevice(node, "berth", verdict.Why)
		case evidence.FenceProven:
			m.endFencing(m.fencer.ByWatchdog(node, m.world.now), verdict.Why, true)
		}
	}
	if m.open > 0 {
		return
	}
	for _, command := range m.fencer.Release(moment) {
		m.try(command, func(bool) {})
	}
}

// askDevice commits that a node's device is asked, and has it asked.
func (m *member) askDevice(node model.Node, caller, why string) {
	command, node, free := m.fencer.Ask(node, caller, why, m.world.now)
	if !free {
		return
	}
	fencer, term := m.fencer, m.term
	m.try(command, func(stored bool) {
		if !stored {
			fencer.Free(node.ID)
			return
		}
		if late := fencer.TooLate(&node, m.world.now); late != "" && m.world.bug != AsksLate {
			m.endFencing(node, late, false)
			return
		}
		m.world.switchOff(m.world.host(node.ID), node.Fencing.AskedAt, func(err error) {
			m.world.awake(m, func() {
				if m.term != term {
					return
				}
				fencer.Answered(&node, err == nil, m.world.now)
				m.endFencing(node, text(err), err == nil)
			})
		})
	})
}

// endFencing commits what came of a fencing.
func (m *member) endFencing(node model.Node, message string, proven bool) {
	command, open := m.fencer.End(m.moment(m.view()), node, message, proven)
	m.world.outlive(&command, node, message, proven)
	if !open {
		m.fencer.Free(node.ID)
		return
	}
	m.try(command, func(stored bool) {
		switch {
		case !stored:
			m.endFencing(node, message, proven)
		default:
			m.fencer.Free(node.ID)
			if proven {
				m.wakeAll()
			}
		}
	})
}

// fenceByHand is an operator who asks for a node to be fenced: by its device, or by the word of who has seen that it is off.
func (m *member) fenceByHand(h *host, request fencing.FenceNode) {
	request.Node, request.Caller = h.id, "sim"
	moment := m.moment(m.view())
	node, err := m.fencer.Fenceable(moment, request)
	if err != nil || node.Fenced() {
		return
	}
	if request.ConfirmedOff {
		m.endFencing(m.fencer.ByHand(node, request.Caller, m.world.now), "somebody has seen that it is off", true)
		return
	}
	for _, one := range m.fencer.Silences(moment) {
		if one.Node.ID == h.id && one.Left > 0 {
			return
		}
	}
	m.askDevice(node, request.Caller, "asked for by hand")
}

// giveLeases keeps the nodes alive that live by leases. That it leads is made sure of before, and then it may stand still for
// as long as it likes.
func (m *member) giveLeases() {
	w := m.world
	if w.leader != m || m.stale != nil {
		return
	}
	for _, node := range m.view().Nodes() {
		s := m.sessions[node.ID]
		if s == nil || s.taken.IsZero() || node.Fence.Method != model.FenceWatchdog || node.Fenced() {
			continue
		}
		until, term := s.taken.Add(evidence.LeaseDuration), m.term
		w.after(w.between(0, 100*time.Millisecond), func() {
			w.awake(m, func() {
				if m.term != term {
					return
				}
				m.fencer.Leased(node.ID, true, w.now)
				w.down(s, func() { s.life.host.dog.lease(until) })
			})
		})
	}
}

func (m *member) wakeAll() {
	for _, id := range sortedKeys(m.runners) {
		if r := m.runners[id]; r != nil {
			r.wake()
		}
	}
}
