package faults

import (
	"maps"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/drive"
	"berth/integration/faults/plant"
	berthv1 "berth/shared/gen/berth/v1"
)

// member is a coordinator. Of all that take themselves for the leader, one can commit.
type member struct {
	world    *World
	id       string
	deaf     bool // no agent reaches it
	alive    bool
	frozen   bool
	later    []func()
	term     uint64 // of its leadership; 0: it follows
	since    time.Time
	stale    *state.Snapshot // what it still sees, when it was deposed and does not know
	sessions map[string]*session
	lost     map[string]time.Time // by node: when its last session of this leadership ended
	runners  map[string]*drive.Runner
	pending  []*proposal
	offset   time.Duration // of its wall clock
	slow     bool          // its disk takes seconds for a write
	errs     bool          // its wall clock is years ahead

	keeper *keeper // of nodes that are fenced
}

func (m *member) leads() bool { return m.alive && m.term != 0 }

// now is the wall clock, which jumps.
func (m *member) now() time.Time { return m.world.Now.Add(m.offset) }

func (m *member) view() *state.Snapshot {
	if m.stale != nil {
		return m.stale
	}
	return m.world.store.Snapshot()
}

// awake lets something happen at a member when it runs.
func (m *member) awake(what func()) {
	switch {
	case !m.alive:
	case m.frozen:
		m.later = append(m.later, what)
	default:
		what()
	}
}

// proposal is a command on its way into the log.
type proposal struct {
	command state.Command
	done    func(state.Result, error)
	settled bool
}

// propose replicates a command. Done hears what came of it, if the member lives and leads to hear it.
func (m *member) propose(command state.Command, done func(state.Result, error)) {
	w := m.world
	p := &proposal{command: command, done: done}
	m.pending = append(m.pending, p)
	term := m.term
	takes := w.Between(500*time.Microsecond, 20*time.Millisecond)
	if m.slow {
		takes += w.Between(500*time.Millisecond, 3*time.Second)
	}
	w.After(takes, func() {
		if p.settled || w.leader != m || m.stale != nil || m.term != term {
			return // lost with the leadership, or it hangs until the member notices
		}
		p.settled = true
		m.pending = slices.DeleteFunc(m.pending, func(other *proposal) bool { return other == p })
		result := w.apply(command)
		if w.Chance(20) { // the outcome was not known, and the same command came again
			if again := w.apply(command); again != result && (again.Refusal == nil) != (result.Refusal == nil) {
				w.Broken("key", command.Key, "the same command gave %+v, then %+v", result, again)
			}
		}
		w.After(w.Between(100*time.Microsecond, 10*time.Millisecond), func() {
			m.awake(func() {
				if m.term == term {
					done(result, nil)
				}
			})
		})
	})
}

// elect finds a leader in a while.
func (w *World) elect(least, most time.Duration) {
	w.After(w.Between(least, most), func() {
		if w.leader != nil {
			return
		}
		var able []*member
		for _, m := range w.members {
			if m.alive && !m.frozen && m.term == 0 {
				able = append(able, m)
			}
		}
		if len(able)*2 <= len(w.members) {
			w.elect(least, most)
			return
		}
		able[w.Random.IntN(len(able))].lead()
	})
}

func (m *member) lead() {
	w := m.world
	w.term++
	w.leader = m
	m.term, m.stale, m.since = w.term, nil, w.Now
	m.sessions, m.runners, m.pending = map[string]*session{}, map[string]*drive.Runner{}, nil
	m.lost = map[string]time.Time{}
	w.Note("leads", m.id, "", "")
	w.byHand.EndUnseen(w.machines(), w.Now)
	w.After(w.Between(time.Second, noticed), func() { m.makeWay(m.errs || m.slow) })
	w.After(deafNoticed, func() { m.makeWay(m.deaf) })
	if w.fencing {
		m.keeper.watch()
	}
	m.takeUp()
}

// takeUp drives what the records say is at work.
func (m *member) takeUp() {
	for _, op := range m.view().LiveOperations() {
		if op.Result != operation.Parked {
			m.drive(op.ID)
		}
	}
}

// depose takes the leadership away. What it has proposed is in the log or not; it does not know that it leads no more until it
// notices.
func (m *member) depose() {
	w := m.world
	if w.leader != m {
		return
	}
	w.Note("deposed", m.id, "", "")
	for _, p := range m.pending {
		if !p.settled && w.Chance(500) {
			w.apply(p.command)
		}
		p.settled = true
	}
	m.pending = nil
	m.stale = w.store.Snapshot()
	w.leader = nil
}

// stepDown is the moment at which a member notices.
func (m *member) stepDown() {
	w := m.world
	if m.term == 0 {
		return
	}
	m.depose()
	w.Note("steps down", m.id, "", "")
	m.term, m.stale = 0, nil
	for _, id := range slices.Sorted(maps.Keys(m.sessions)) {
		s := m.sessions[id]
		w.After(w.Between(time.Millisecond, 200*time.Millisecond), func() { s.hangUp() })
	}
	m.keeper.strayed.session.hangUp()
	m.sessions, m.runners = map[string]*session{}, map[string]*drive.Runner{}
}

func (m *member) crash() {
	w := m.world
	if !m.alive {
		return
	}
	w.Note("coordinator dies", m.id, "", "")
	led := w.leader == m
	m.stepDown()
	m.alive, m.frozen, m.later = false, false, nil
	if led {
		w.elect(time.Second, 3*time.Second)
	}
}

func (m *member) freeze() {
	w := m.world
	if !m.alive || m.frozen {
		return
	}
	w.Note("coordinator freezes", m.id, "", "")
	m.frozen = true
	if w.leader == m {
		m.depose()
		w.elect(time.Second, 3*time.Second)
	}
	for _, id := range slices.Sorted(maps.Keys(m.sessions)) {
		s := m.sessions[id]
		w.After(w.Between(2*time.Second, 25*time.Second), func() {
			if m.frozen {
				s.hangUp()
			}
		})
	}
	m.keeper.strayed.session.hangUp()
}

// thaw lets it go on where it was: an old leader works for a moment before it notices.
func (m *member) thaw() {
	w := m.world
	if !m.alive || !m.frozen {
		return
	}
	w.Note("coordinator thaws", m.id, "", "")
	m.frozen = false
	for _, what := range m.later {
		w.After(0, func() { m.awake(what) })
	}
	m.later = nil
	if m.stale != nil {
		w.After(w.Between(0, 3*time.Second), func() { m.stepDown() })
	}
}

// isolate cuts a leader off from the other coordinators, not from the agents.
func (m *member) isolate() {
	w := m.world
	if w.leader != m || len(w.members) == 1 {
		return
	}
	m.depose()
	term := m.term
	w.After(w.Between(500*time.Millisecond, 5*time.Second), func() {
		if m.term == term {
			m.stepDown()
		}
	})
	w.elect(time.Second, 3*time.Second)
}

// connected is an agent's hello.
func (m *member) connected(s *session, hello *berthv1.Hello, sequence uint64) {
	if !s.open || m.term != s.term {
		s.hangUp()
		return
	}
	if _, known := m.view().Node(s.life.host.ID); !known && m.world.fencing {
		m.keeper.admitRemoved(s)
		return
	}
	s.served = true
	if older := m.sessions[s.life.host.ID]; older != nil && older.life != s.life {
		older.hangUp()
	}
	m.sessions[s.life.host.ID] = s
	if w := m.world; w.fencing {
		if m.keeper.welcome(s, hello, sequence); !s.open {
			return
		}
		w.After(w.Between(100*time.Microsecond, w.Mix.Delay), func() { s.report() })
	}
	m.wakeAll()
}

// answered is what an agent says of an order.
func (m *member) answered(s *session, answer operation.Answer) {
	if m.term != s.term || m.sessions[s.life.host.ID] != s && !m.world.Mix.Wild || m.doubts(s) {
		return
	}
	if r := m.runners[answer.Operation]; r != nil {
		r.Take(m.world.bug.Heard(answer))
	}
}

// doubts tells that a session may be of another machine than its node.
func (m *member) doubts(s *session) bool {
	node, known := m.view().Node(s.life.host.ID)
	return known && m.world.fencing && m.world.bug != plant.CloneBelieved &&
		node.Doubt(model.Machine{Hardware: s.life.host.Hardware, Source: model.HardwareProduct, Boot: s.life.boot}) != ""
}

func (m *member) wakeAll() {
	for _, id := range sortedKeys(m.runners) {
		if r := m.runners[id]; r != nil {
			r.Wake()
		}
	}
}

// leader is a member as those who drive its operations meet it.
type leader struct{ *member }

func (m *member) drive(id string) {
	if m.term != 0 && m.runners[id] == nil {
		m.runners[id] = drive.New(leader{m}, id, uint16(m.world.Random.Uint32()))
		leader{m}.After(0, m.runners[id].Look)
	}
}

// View implements drive.Leader.
func (m leader) View() *state.Snapshot { return m.view() }

// Clock implements drive.Leader.
func (m leader) Clock() time.Time { return m.now() }

// NewKey implements drive.Leader.
func (m leader) NewKey() string { return m.world.newKey() }

// After implements drive.Leader.
func (m leader) After(pause time.Duration, due func()) {
	m.world.After(pause, func() { m.awake(due) })
}

// Has implements drive.Leader.
func (m leader) Has(id string, r *drive.Runner) bool { return m.runners[id] == r }

// Ended implements drive.Leader.
func (m leader) Ended(id string) { delete(m.runners, id) }

// Input implements drive.Leader.
func (m leader) Input(snapshot *state.Snapshot, op operation.Operation, vm model.VM) operation.Input {
	return m.inputOf(snapshot, op, vm)
}

// Propose implements drive.Leader.
func (m leader) Propose(command state.Command, done func(state.Result, error)) {
	m.propose(command, done)
}

// Came implements drive.Leader.
func (m leader) Came(vm *model.VM) {
	if m.world.fencing {
		m.keeper.fencer.Came(vm, m.world.Now)
	}
}

// Wrote implements drive.Leader.
func (m leader) Wrote(next *operation.Next) {
	if m.world.fencing && m.world.Local[next.VM.ID] {
		lookOf(m.keeper).Wrote(next)
	}
}

// Refused implements drive.Leader.
func (m leader) Refused(op, why string) { m.world.Broken("refused", op, "a step was refused: %s", why) }

// Order implements drive.Leader. What a node was told before it was proven to be off is void, and until it has booted anew it is told
// nothing.
func (m leader) Order(snapshot *state.Snapshot, op *operation.Operation, orders []operation.Order) {
	for _, order := range m.world.bug.Orders(op, orders) {
		if node, known := snapshot.Node(order.Node); known && node.Fenced() {
			continue
		}
		if s := m.sessions[order.Node]; s != nil && !m.doubts(s) && !s.lacks(order) {
			s.order(m.term, order)
		}
	}
}

// Cancel implements drive.Leader.
func (m leader) Cancel(orders []operation.Order) {
	for _, order := range orders {
		if s := m.sessions[order.Node]; s != nil {
			s.down(func() { s.life.jobs.Cancel(order.Operation, order.Step) })
		}
	}
}

// Choose implements drive.Leader.
func (m leader) Choose(
	snapshot *state.Snapshot, op *operation.Operation, vm *model.VM,
) (target operation.Target, node *model.Node, early bool) {
	node = m.choose(snapshot, *vm, op.Pinned, op.Excluded)
	if node == nil {
		return target, nil, m.world.Now.Sub(m.since) < model.SessionGrace
	}
	return m.target(snapshot, vm, node), node, false
}
