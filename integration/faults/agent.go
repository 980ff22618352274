package faults

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/jobs"
	"berth/agent/telemetry"
	"berth/integration/faults/machine"
	"berth/integration/faults/stage"
	berthv1 "berth/shared/gen/berth/v1"
)

// host is a machine with its agent.
type host struct {
	*machine.Machine
	world *World
	life  *life // nil: none has begun yet
	lives int   // so far

	sickFrom time.Time // since when its agent says that libvirtd does not answer; zero: it does
	sickTill time.Time // until when it did so last
	old      bool      // its agent is of the release before
	outdated bool      // the certificate of its agent has ended

	forsaken bool  // it is dead, and nobody says that it is off
	clone    *host // a machine that boots from a copy of its disk; nil: there was none
	isClone  bool
}

func (w *World) newHost(id string, memory int64) *host {
	h := &host{Machine: w.NewMachine(id, memory), world: w}
	h.Begin = h.live
	return h
}

// life is one life of a host's agent: its work, which dies with it, and its session with a coordinator.
type life struct {
	*stage.Scheduler
	host    *host
	boot    string // of the host
	dead    bool
	jobs    *jobs.Jobs
	lister  hypervisor.Lister
	storage hypervisor.Storage
	session *session
	tries   int

	number   int    // of the host's lives
	sequence uint64 // of the messages of this life
}

// live begins a life of the host's agent.
func (h *host) live() {
	w := h.world
	if !h.On || h.life != nil && !h.life.dead {
		return
	}
	w.Note("agent begins", h.ID, "", "")
	h.lives++
	l := &life{host: h, boot: h.BootID(), number: h.lives}
	l.Scheduler = w.NewScheduler(l)
	h.life, h.Agent = l, nil
	l.storage = h.Libvirt(l)
	opened, err := jobs.Open(jobs.Config{
		Hypervisor: w.bug.Misread(h.Libvirt(l)), NodeID: h.ID, VirtType: "auto", Logger: hclog.NewNullLogger(),
		Scheduler: l, Storage: w.bug.Forget(h.Journal(l)),
	})
	if err != nil { // the service manager tries again
		l.Kill(time.Second)
		return
	}
	l.jobs, h.Agent = opened, l
	machine.TellRuns(h.Machine, h.old)
	l.dial()
}

// IsDead implements stage.Life.
func (l *life) IsDead() bool { return l.dead }

// Holds implements stage.Life.
func (l *life) Holds(due func()) bool {
	if !l.host.Frozen || l.dead {
		return false
	}
	l.host.Held = append(l.host.Held, due)
	return true
}

// Ran implements stage.Life.
func (l *life) Ran() { l.deliverResults() }

// Kill ends a life as kill -9 does. Another one begins after a while; 0: not by itself.
func (l *life) Kill(again time.Duration) {
	if l == nil || l.dead {
		return
	}
	h := l.host
	h.Note("agent dies", h.ID, "", "")
	l.dead = true
	h.Dog.Starve()
	l.session.hangUp()
	h.After(0, l.Unwind)
	if again > 0 {
		h.After(again, h.live)
	}
}

// Saw takes an event of libvirt.
func (l *life) Saw(event hypervisor.Event) { l.jobs.Saw(event) }

// Changed tells the coordinator of one domain. That it is gone is told once the agent has heard how.
func (l *life) Changed(d *machine.Domain) {
	s, message := l.session, telemetry.Domain(d.Domain)
	if !l.host.world.fencing || s == nil {
		return
	}
	tell := func() {
		s.send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{DomainChange: &berthv1.DomainChange{Domain: message}}})
	}
	if d.State != hypervisor.Absent {
		tell()
		return
	}
	l.host.After(machine.EventTakes, func() {
		if l.dead || l.host.Domains[d.UUID] != nil {
			return // it is here again, and that was told
		}
		for _, one := range l.jobs.Endings() {
			if one.UUID == d.UUID {
				telemetry.AddEnding(message, one)
			}
		}
		telemetry.AddLastRun(message, l.jobs.LastRuns)
		tell()
	})
}

// do has the agent's jobs carry out an order.
func (l *life) do(command *berthv1.Command) {
	l.host.Note("order", l.host.ID, command.GetOperationId(), "")
	l.jobs.Do(context.Background(), command)
}

// dial looks for the leader. An agent believes who says that it leads.
func (l *life) dial() {
	w, h := l.host.world, l.host
	pause := w.Between(10*time.Millisecond, 500*time.Millisecond)
	if l.tries++; l.tries > 12 {
		pause = w.Between(time.Second, 10*time.Second)
	}
	w.After(pause, func() {
		switch {
		case l.dead || l.session != nil:
			return
		case h.Frozen, h.outdated:
			l.dial()
			return
		}
		var leaders []*member
		for _, m := range w.members {
			if m.leads() && !m.frozen && !m.deaf && !w.IsCut(h.ID, m.id) {
				leaders = append(leaders, m)
			}
		}
		if len(leaders) == 0 {
			l.dial()
			return
		}
		l.connect(leaders[w.Random.IntN(len(leaders))])
	})
}

// connect opens a session with a coordinator.
func (l *life) connect(m *member) {
	w := l.host.world
	s := &session{life: l, member: m, term: m.term, open: true, began: w.Now}
	l.session, l.tries = s, 0
	w.Note("session", l.host.ID, m.id, "")
	if !w.IsCut(l.host.ID, m.id) {
		hello, sequence := l.hello()
		w.After(w.Between(100*time.Microsecond, w.Mix.Delay), func() {
			m.awake(func() { m.connected(s, hello, sequence) })
		})
	}
	const welcomeWait = 5 * time.Second
	w.After(welcomeWait, func() {
		if !s.served {
			s.hangUp()
		}
	})
	l.deliverResults()
}
