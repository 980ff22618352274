package machine

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"berth/agent/hypervisor"
)

// keepAlive is how long the two daemons of a migration wait for each other before they give up.
const keepAlive = 30 * time.Second

// phase is how far a migration has come, as libvirt counts it.
type phase int

const (
	preparing  phase = iota // the target makes the incoming guest
	performing              // memory is copied; the guest runs on the source
	performed               // the guest stands still; the target is to finish
	finishing               // the target is at it
	finished                // the target's job has ended; its reply is on the way
	confirming              // the source has the reply
)

// move is one migration, peer to peer. It belongs to the daemons and goes on whoever watches.
type move struct {
	source, target *Machine
	out, in        *Domain // in is nil until it is prepared
	options        hypervisor.MigrateOptions
	phase          phase
	over           bool // on the source
	err            error
	began          time.Time
	copying        time.Duration // how long the copy takes
	ended          chan struct{}
	fails          string // what goes wrong by itself: persist, confirm; empty: nothing
}

var errMigration = errors.New("internal error: migration failed")

// migrate begins a migration. It returns before anything is copied.
func (h *Machine) migrate(uuid string, options hypervisor.MigrateOptions) (*move, error) {
	d := h.listed(uuid)
	switch {
	case d == nil:
		return nil, fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	case d.move != nil:
		return nil, fmt.Errorf("%w: a migration", hypervisor.ErrBusy)
	case d.State != hypervisor.Running && d.State != hypervisor.Paused:
		return nil, fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
	}
	if err := refuseBound(d); err != nil {
		return nil, err
	}
	parsed, err := url.Parse(options.TargetURI)
	if err != nil {
		return nil, err
	}
	target := h.machine(parsed.Hostname())
	if target == nil || target == h || !h.reaches(target) {
		return nil, errors.New("unable to connect to the other daemon")
	}
	m := &move{
		source: h, target: target, out: d, options: options, began: h.Now, ended: make(chan struct{}),
		copying: h.Between(h.Mix.CopyLeast, h.Mix.CopyMost),
	}
	switch {
	case h.Chance(h.Mix.PersistFails):
		m.fails = "persist"
	case h.Chance(h.Mix.ConfirmFails):
		m.fails = "confirm"
	}
	d.move, d.JobActive = m, true
	h.moves = append(h.moves, m)
	h.Note("move begins", h.ID, uuid, "to "+target.ID)
	m.then(10*time.Millisecond, 200*time.Millisecond, h, m.prepare)
	m.watch()
	return m, nil
}

// then goes on after a while, when the host's daemon is there to do it.
func (m *move) then(least, most time.Duration, at *Machine, step func()) {
	was := m.phase
	var due func()
	due = func() {
		switch {
		case m.over || m.phase != was:
		case at.Frozen || at.Hung:
			m.source.After(500*time.Millisecond, due)
		default:
			step()
		}
	}
	m.source.After(m.source.Between(least, most), due)
}

// prepare is row "prepare": the target takes the guest in.
func (m *move) prepare() {
	t, incoming := m.target, m.out.Domain
	if _, clash := t.Domains[incoming.UUID]; clash || !m.source.reaches(t) || t.Hung || t.free() < m.out.memory() ||
		m.source.Chance(m.source.Mix.PrepareFails) {
		m.rollBack(errMigration)
		return
	}
	read, err := readXML(m.options.DomainXML)
	if err != nil {
		m.rollBack(err)
		return
	}
	volumes, err := disksOf(m.options.DomainXML)
	lacking := t.lacks(volumes)
	if err != nil || lacksFile(t, &read) || lacking != "" || len(m.options.CopyDisks) != len(volumes) || !m.fits() {
		m.rollBack(errMigration)
		return
	}
	m.in = &Domain{Domain: read, At: t, xml: m.options.DomainXML, guest: m.out.guest, version: -1, move: m, volumes: volumes}
	m.in.JobActive, m.in.Balloon, m.in.VCPUs = true, m.out.Balloon, m.out.VCPUs
	m.in.readSizes()
	t.Domains[incoming.UUID] = m.in
	t.Set(m.in, hypervisor.PausedMigration, "migration")
	m.phase = performing
	m.copyOn()
}

// copyOn looks at the copy now and then.
func (m *move) copyOn() {
	const every = 2 * time.Second
	m.then(0, min(every, max(m.began.Add(m.copying).Sub(m.source.Now), time.Millisecond)), m.source, func() {
		switch {
		case m.in == nil || m.target.Domains[m.in.UUID] != m.in:
			m.rollBack(errMigration)
		case m.source.Now.Sub(m.began) < m.copying:
			m.copyOn()
		case m.target.Frozen || m.source.IsCut(m.source.ID, m.target.ID):
			m.copyOn() // no byte goes through; the keepalive ends it
		default:
			m.stopGuest()
		}
	})
}

// stopGuest is the switch-over: the guest stands still and its last pages travel.
func (m *move) stopGuest() {
	m.phase = performed
	if m.out.State == hypervisor.Running || m.out.State == hypervisor.Paused {
		m.source.Set(m.out, hypervisor.PausedMigration, "migration")
	}
	m.in.version = m.out.version
	m.fill()
	m.source.Witness.Stands(m.out, m.target, m.copies())
	m.then(5*time.Millisecond, 300*time.Millisecond, m.source, m.callFinish)
}

// callFinish sends the source's Finish.
func (m *move) callFinish() {
	if !m.source.reaches(m.target) {
		m.finishLost(false)
		return
	}
	m.phase = finishing
	m.then(time.Millisecond, 50*time.Millisecond, m.target, m.finish)
}

// finish is the target's part. A strict one leaves the guest paused.
func (m *move) finish() {
	t := m.target
	if m.in == nil || t.Domains[m.in.UUID] != m.in || !t.Up {
		m.finishLost(false)
		return
	}
	if m.fails == "persist" { // row "persisting on the target fails": Finish fails, the source resumes
		m.source.Note("persist fails", t.ID, m.in.UUID, "")
		m.dropIncoming("finish failed")
		m.rollBack(errMigration)
		return
	}
	m.arrive()
	m.phase = finished
	m.then(time.Millisecond, 50*time.Millisecond, m.source, func() {
		if !m.source.reaches(t) || m.source.Chance(m.source.Mix.ReplyLost) || m.source.loses(m.in.UUID) {
			m.source.Note("finish reply lost", t.ID, m.in.UUID, "")
			m.finishLost(true)
			return
		}
		m.phase = confirming
		m.then(time.Millisecond, 20*time.Millisecond, m.source, m.confirm)
	})
}

// arrive ends the target's job.
func (m *move) arrive() {
	t := m.target
	if m.in == nil || t.Domains[m.in.UUID] != m.in {
		return
	}
	m.in.JobActive, m.in.move = false, nil
	if m.options.Paused {
		t.Set(m.in, hypervisor.Paused, "user")
	} else {
		t.Set(m.in, hypervisor.Running, "migrated")
	}
	t.completed[m.in.UUID] = hypervisor.Job{}
}

// finishLost is a Finish without an answer: the source waits for its keepalive and resumes its own copy.
func (m *move) finishLost(done bool) {
	m.then(0, keepAlive, m.source, func() {
		if !done && m.in != nil && m.in.move == m {
			m.dropLater()
		}
		m.rollBack(errMigration)
	})
}

// confirm is the source's end: its copy goes.
func (m *move) confirm() {
	if m.fails == "confirm" { // row "Confirm fails": the source is left paused
		m.source.Note("confirm fails", m.source.ID, m.out.UUID, "")
		m.end(errMigration)
		return
	}
	m.source.completed[m.out.UUID] = hypervisor.Job{}
	out := m.out
	m.end(nil)
	m.source.remove(out, "migrated")
}

// watch is the keepalive between the daemons. Whoever is awake and does not hear the other gives up what is not finished.
func (m *move) watch() {
	m.source.After(keepAlive, func() {
		s, t := m.source, m.target
		if m.over {
			return
		}
		if m.phase <= performed && !t.Frozen && !t.Hung && !t.reaches(s) {
			m.dropIncoming("connection lost")
		}
		if m.phase <= performed && !s.Frozen && !s.Hung && !s.reaches(t) {
			m.rollBack(errMigration)
			return
		}
		m.watch()
	})
}

// rollBack ends it on the source: the guest goes on there.
func (m *move) rollBack(err error) {
	if m.over {
		return
	}
	if m.phase <= performed {
		m.dropLater()
	}
	out := m.out
	m.end(err)
	if m.source.Domains[out.UUID] == out && out.State == hypervisor.PausedMigration {
		if out.ByOwner {
			m.source.Set(out, hypervisor.Paused, "user")
		} else {
			m.source.Set(out, hypervisor.Running, "migration cancelled")
		}
	}
}

// dropLater lets the target notice that nobody feeds its incoming guest any more, and destroy it.
func (m *move) dropLater() {
	if m.in == nil {
		return
	}
	wait := m.source.Between(time.Millisecond, 100*time.Millisecond)
	if !m.source.reaches(m.target) {
		wait = m.source.Between(0, keepAlive)
	}
	in := m.in
	var due func()
	due = func() {
		if m.target.Frozen || m.target.Hung {
			m.source.After(time.Second, due)
			return
		}
		if in.move == m && m.target.Domains[in.UUID] == in {
			m.dropIncoming("migration failed")
		}
	}
	m.source.After(wait, due)
}

// dropIncoming destroys the target's copy.
func (m *move) dropIncoming(why string) {
	if m.in != nil && m.in.move == m {
		m.in.move = nil
		m.target.remove(m.in, why)
	}
}

// end is the job's end on the source.
func (m *move) end(err error) {
	if m.over {
		return
	}
	m.over, m.err = true, err
	m.source.Note("move ends", m.source.ID, m.out.UUID, text(err))
	m.out.move, m.out.JobActive = nil, false
	close(m.ended)
	m.source.stir()
	m.source.forget()
}

// abort is the agent's wish. It comes too late when the guest stands still.
func (m *move) abort() error {
	if m.over || m.phase > performing {
		return fmt.Errorf("%w: no job to abort", hypervisor.ErrInvalidState)
	}
	m.source.Note("move aborted", m.source.ID, m.out.UUID, "")
	m.rollBack(hypervisor.ErrAborted)
	return nil
}

// lostDomain tells that one of the two is gone: destroyed, or its QEMU has crashed.
func (m *move) lostDomain(d *Domain) {
	switch {
	case d == m.out && !m.over && m.phase <= performing:
		m.dropLater()
		m.end(errMigration)
	case d == m.out: // all of it is on the target: the daemons go on without it
	case d == m.in && m.phase <= finishing:
		m.in = nil
		m.rollBack(errMigration)
	}
}

// daemonDied is the table's rows about restarts. What the daemon finds it decides when it comes back; it is the same.
func (m *move) daemonDied(h *Machine) {
	if m.over {
		if h == m.target && m.in != nil && m.in.move == m {
			m.dropIncoming("daemon restarted")
		}
		return
	}
	if h == m.target {
		switch m.phase {
		case preparing, performing, performed: // row "target daemon restarts in prepare": kills the incoming guest
			m.dropIncoming("daemon restarted")
			m.then(0, time.Second, m.source, func() { m.rollBack(errMigration) })
		case finishing: // row "target daemon restarts in finish": kills it if it is still paused
			m.dropIncoming("daemon restarted")
			m.finishLost(true)
		case finished: // it keeps it: the job had ended before the reply went out
			m.finishLost(true)
		case confirming:
		}
		return
	}
	switch m.phase {
	case preparing, performing: // row "source daemon restarts, phase perform": cancels the move, resumes the guest
		m.rollBack(errMigration)
	case performed, finishing, finished:
		// Row "perform done, no Finish answer": the guest stays paused, the job is dropped; a third party must decide. The
		// target's daemon ends what was not finished when its connection breaks.
		switch {
		case m.phase == finishing && m.source.Chance(500): // the call was there already
			m.arrive()
		case m.phase != finished:
			m.dropLater()
		}
		m.end(errMigration)
	case confirming: // row "source daemon restarts in confirm": kills the source copy
		out := m.out
		m.end(nil)
		m.source.remove(out, "migrated")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Slow makes the copy of a guest that goes elsewhere take longer.
func (s *Site) Slow(vm string, by time.Duration) {
	for _, m := range s.moves {
		if m.out.UUID == vm && !m.over {
			m.copying += by
		}
	}
}
