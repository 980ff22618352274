package faults

import (
	"time"

	"berth/coordinator/agents"
	"berth/coordinator/inventory"
	"berth/coordinator/operation"
)

// session is a stream between an agent and the coordinator that it takes for the leader.
type session struct {
	life   *life
	member *member
	term   uint64
	open   bool
	began  time.Time
	served bool      // the coordinator has welcomed it
	lastUp time.Time // when the last message of each direction arrives: a stream keeps its order
	lastIn time.Time

	reports *inventory.Session // of the coordinator, where agents report
	taken   time.Time          // when the report was sent that the coordinator has taken in last
	needed  time.Time          // when something has needed the host's watchdog last
	leases  int                // messages about leases that were sent, and the latest that the agent has got
	leased  int
}

// hangUp ends a session. Each side notices when it does.
func (s *session) hangUp() {
	if s == nil || !s.open {
		return
	}
	s.open = false
	s.member.world.Note("session ends", s.life.host.ID, s.member.id, "")
	if l := s.life; l.session == s {
		l.session = nil
		if !l.dead {
			l.dial()
		}
	}
	if s.member.sessions[s.life.host.ID] == s {
		delete(s.member.sessions, s.life.host.ID)
		s.member.lost[s.life.host.ID] = s.member.world.Now
	}
	if s.reports != nil {
		s.reports.Close("it ended")
	}
}

// breakSession lets the host's session end over a link that is cut, after the time that noticing takes.
func (h *host) breakSession(after time.Duration) {
	if h.life == nil || h.life.session == nil {
		return
	}
	h.After(after, h.life.session.hangUp)
}

// deliverResults sends what the agent's jobs have found.
func (l *life) deliverResults() {
	if l.jobs == nil || l.session == nil {
		return
	}
	s := l.session
	for {
		select {
		case result := <-l.jobs.Results():
			l.host.Note("answer", l.host.ID, result.GetOperationId(),
				result.GetOutcome().String()+" "+result.GetErrorCode()+" "+result.GetError())
			l.host.forget(result.GetDomain())
			answer := agents.Answer(l.host.ID, l.boot, result)
			l.sequence++
			sequence := l.sequence
			s.up(func() {
				s.ended(result, sequence)
				s.member.answered(s, answer)
			})
		case <-l.jobs.Progress():
		default:
			return
		}
	}
}

// up carries a message from an agent to its coordinator, down one to the agent.
func (s *session) up(deliver func()) {
	s.carry(&s.lastUp, func() {
		s.member.awake(func() {
			if s.open || s.member.world.Mix.Wild {
				deliver()
			}
		})
	})
}

func (s *session) down(deliver func()) {
	s.carry(&s.lastIn, func() {
		h := s.life.host
		var arrive func()
		arrive = func() {
			switch {
			case s.life.dead || !s.open && !h.Mix.Wild:
			case h.Frozen:
				h.Held = append(h.Held, arrive)
			default:
				deliver()
			}
		}
		arrive()
	})
}

// carry takes one message over the network, unless the link is cut.
func (s *session) carry(last *time.Time, deliver func()) {
	w := s.member.world
	if w.IsCut(s.life.host.ID, s.member.id) {
		return
	}
	w.Carry(last, deliver)
}

// order gives an order to the agent.
func (s *session) order(term uint64, order operation.Order) {
	command := agents.Command(term, agents.For(s.life.host.knows(), order))
	s.down(func() { s.life.do(command) })
}
