package faults

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/jobs"
	"berth/coordinator/agents"
	"berth/coordinator/inventory"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// life is one life of a host's agent: its work, which dies with it, and its session with a coordinator.
type life struct {
	host    *host
	boot    string // of the host
	dead    bool
	jobs    *jobs.Jobs
	strands []*strand
	session *session
	tries   int

	number   int    // of the host's lives
	sequence uint64 // of the messages of this life
}

// session is a stream between an agent and the coordinator that it takes for the leader.
type session struct {
	life   *life
	member *member
	term   uint64
	open   bool
	served bool      // the coordinator has welcomed it
	lastUp time.Time // when the last message of each direction arrives: a stream keeps its order
	lastIn time.Time

	reports *inventory.Session // of the coordinator, where agents report
	taken   time.Time          // when the report was sent that the coordinator has taken in last
}

// live begins a life of the host's agent.
func (w *World) live(h *host) {
	if !h.on || h.life != nil && !h.life.dead {
		return
	}
	w.note("agent begins", h.id, "", "")
	h.lives++
	l := &life{host: h, boot: h.bootID(), number: h.lives}
	h.life = l
	opened, err := jobs.Open(jobs.Config{
		Hypervisor: w.breakable(&libvirt{host: h, life: l}), NodeID: h.id, VirtType: "auto", Logger: hclog.NewNullLogger(),
		Scheduler: scheduler{world: w, life: l}, Storage: w.storage(journal{disk: h.disk, life: l}),
	})
	if err != nil { // the service manager tries again
		w.kill(l, time.Second)
		return
	}
	l.jobs = opened
	w.dial(l)
}

// kill ends a life as kill -9 does. Another one begins after a while; 0: not by itself.
func (w *World) kill(l *life, again time.Duration) {
	if l == nil || l.dead {
		return
	}
	h := l.host
	w.note("agent dies", h.id, "", "")
	l.dead = true
	h.dog.starve()
	w.hangUp(l.session)
	w.after(0, func() { w.unwind(l) })
	if again > 0 {
		w.after(again, func() { w.live(h) })
	}
}

// unwind lets the dead life's work return. It finds nothing that it could still change.
func (w *World) unwind(l *life) {
	for i := 0; i < len(l.strands); i++ {
		for tries := 0; !l.strands[i].over; tries++ {
			if tries > 1000 {
				panic("work of a dead agent does not end")
			}
			w.resume(l.strands[i])
		}
	}
	l.strands = nil
}

// dial looks for the leader. An agent believes who says that it leads.
func (w *World) dial(l *life) {
	pause := w.between(10*time.Millisecond, 500*time.Millisecond)
	if l.tries++; l.tries > 12 {
		pause = w.between(time.Second, 10*time.Second)
	}
	w.after(pause, func() {
		switch h := l.host; {
		case l.dead || l.session != nil:
			return
		case h.frozen:
			w.dial(l)
			return
		}
		var leaders []*member
		for _, m := range w.members {
			if m.leads() && !m.frozen && !w.isCut(l.host.id, m.id) {
				leaders = append(leaders, m)
			}
		}
		if len(leaders) == 0 {
			w.dial(l)
			return
		}
		w.connect(l, leaders[w.random.IntN(len(leaders))])
	})
}

func (w *World) connect(l *life, m *member) {
	s := &session{life: l, member: m, term: m.term, open: true}
	l.session, l.tries = s, 0
	w.note("session", l.host.id, m.id, "")
	if !w.isCut(l.host.id, m.id) {
		hello, sequence := l.hello()
		w.after(w.between(100*time.Microsecond, w.mix.Delay), func() {
			w.awake(m, func() { m.connected(s, hello, sequence) })
		})
	}
	const welcomeWait = 5 * time.Second
	w.after(welcomeWait, func() {
		if !s.served {
			w.hangUp(s)
		}
	})
	w.deliverResults(l)
}

// hangUp ends a session. Each side notices when it does.
func (w *World) hangUp(s *session) {
	if s == nil || !s.open {
		return
	}
	s.open = false
	w.note("session ends", s.life.host.id, s.member.id, "")
	if l := s.life; l.session == s {
		l.session = nil
		if !l.dead {
			w.dial(l)
		}
	}
	if s.member.sessions[s.life.host.id] == s {
		delete(s.member.sessions, s.life.host.id)
	}
	if s.reports != nil {
		s.reports.Close("it ended")
	}
}

// breakSessions lets the sessions of a host, or those over a link that is cut, end after the time that noticing takes.
func (w *World) breakSessions(h *host, after time.Duration) {
	if h.life == nil || h.life.session == nil {
		return
	}
	s := h.life.session
	w.after(after, func() { w.hangUp(s) })
}

// deliverResults sends what the agent's jobs have found.
func (w *World) deliverResults(l *life) {
	if l.jobs == nil || l.session == nil {
		return
	}
	s := l.session
	for {
		select {
		case result := <-l.jobs.Results():
			w.note("answer", l.host.id, result.GetOperationId(), result.GetOutcome().String()+" "+result.GetErrorCode()+" "+result.GetError())
			answer := agents.Answer(l.host.id, l.boot, result)
			w.up(s, func() { s.member.answered(s, answer) })
		case <-l.jobs.Progress():
		default:
			return
		}
	}
}

// up carries a message from an agent to its coordinator, down one to the agent.
func (w *World) up(s *session, deliver func()) {
	w.carry(s, &s.lastUp, func() {
		w.awake(s.member, func() {
			if s.open || w.mix.Wild {
				deliver()
			}
		})
	})
}

func (w *World) down(s *session, deliver func()) {
	w.carry(s, &s.lastIn, func() {
		h := s.life.host
		var arrive func()
		arrive = func() {
			switch {
			case s.life.dead || !s.open && !w.mix.Wild:
			case h.frozen:
				h.later = append(h.later, arrive)
			default:
				deliver()
			}
		}
		arrive()
	})
}

// carry takes one message over the network. In order and once, or, in a wild one, late, lost, double and in any order.
func (w *World) carry(s *session, last *time.Time, deliver func()) {
	if w.isCut(s.life.host.id, s.member.id) {
		return
	}
	delay := w.between(100*time.Microsecond, w.mix.Delay)
	if !w.mix.Wild {
		at := w.now.Add(delay)
		if at.Before(*last) {
			at = *last
		}
		*last = at
		w.after(at.Sub(w.now), deliver)
		return
	}
	if w.chance(w.mix.Lost) {
		return
	}
	if w.chance(50) {
		delay += w.between(0, 30*time.Second)
	}
	w.after(delay, deliver)
	if w.chance(w.mix.Doubled) {
		w.after(delay+w.between(0, 20*time.Second), deliver)
	}
}

// order gives an order to the agent.
func (s *session) order(w *World, term uint64, order operation.Order) {
	command := agents.Command(term, order)
	w.down(s, func() { s.life.do(w, command) })
}

func (l *life) do(w *World, command *berthv1.Command) {
	w.note("order", l.host.id, command.GetOperationId(), "")
	l.jobs.Do(w.context, command)
}
