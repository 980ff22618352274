package faults

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/telemetry"
	"berth/coordinator/evidence"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// pace is how often agents report.
func (w *World) pace() model.Pace { return model.PaceOf(len(w.hosts)) }

// listen begins a leader's knowledge of what the nodes say.
func (m *member) listen() {
	w := m.world
	m.facts = inventory.New(func() time.Time { return w.now }, hclog.NewNullLogger())
	m.heard = map[string]time.Time{}
}

// welcome opens the session of a node's reports.
func (m *member) welcome(s *session, hello *berthv1.Hello, sequence uint64) {
	reports, err := m.facts.OpenSession(s.life.host.id, hello, sequence)
	if err != nil {
		m.world.hangUp(s)
		return
	}
	reports.Keep(m.world.pace())
	s.reports = reports
	m.heard[s.life.host.id] = m.world.now
}

// hello is the first message of a session.
func (l *life) hello() (*berthv1.Hello, uint64) {
	l.sequence++
	return &berthv1.Hello{
		NodeId: l.host.id, Incarnation: fmt.Sprintf("%s/%d", l.boot, l.number), WatchdogSeconds: l.host.dog.time().Seconds(),
	}, l.sequence
}

// report keeps telling the coordinator about the host, as long as the session lasts: a sample at its pace, and all its domains
// now and then.
func (w *World) report(s *session) {
	if !w.fencing {
		return
	}
	every, whole := w.pace().Telemetry(), w.now
	var tell func()
	tell = func() {
		switch h := s.life.host; {
		case !s.open || s.life.dead:
			return
		case h.frozen:
		default:
			if !w.now.Before(whole) {
				whole = w.now.Add(w.pace().Inventory())
				w.send(s, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: h.inventory()}})
			}
			w.send(s, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{
				Telemetry: &berthv1.NodeTelemetry{WatchdogSeconds: h.dog.time().Seconds()},
			}})
		}
		w.after(every, tell)
	}
	tell()
}

// inventory is all that the host shows.
func (h *host) inventory() *berthv1.InventoryReport {
	report := &berthv1.InventoryReport{Node: &berthv1.NodeInventory{MemoryBytes: h.memory, Cpus: 64, MigrationUri: h.uri()}}
	if !h.up || h.hung {
		report.DomainsUnknown, report.DomainsError = true, "libvirt does not answer"
		return report
	}
	for _, d := range h.sorted() {
		report.Domains = append(report.Domains, telemetry.Domain(d.Domain))
	}
	return report
}

// changed tells the coordinator of one domain.
func (h *host) changed(d *domain) {
	if w := h.world; w.fencing && h.up && !h.hung && h.life != nil && h.life.session != nil {
		w.send(h.life.session, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{
			DomainChange: &berthv1.DomainChange{Domain: telemetry.Domain(d.Domain)},
		}})
	}
}

// send carries one report.
func (w *World) send(s *session, message *berthv1.SessionRequest) {
	l := s.life
	l.sequence++
	message.Sequence = l.sequence
	at := w.now
	w.up(s, func() {
		m := s.member
		if m.term != s.term || s.reports == nil || !s.reports.Report(message) {
			return
		}
		m.heard[l.host.id] = w.now
		if message.GetTelemetry() != nil {
			s.taken = at
		}
	})
}

// moment is the records with what this leader knows of the nodes.
func (m *member) moment(snapshot *state.Snapshot) evidence.Moment {
	now := m.world.now
	return evidence.Moment{Records: snapshot, At: now, Facts: func(node string) model.NodeFacts { return m.facts.Facts(node, now) }}
}

// placeable tells whether a decision may choose a node, by what it reports.
func (m *member) placeable(node *model.Node) bool {
	facts := m.facts.Facts(node.ID, m.world.now)
	return !node.Fenced() && facts.Liveness == model.Up && facts.Inventory && facts.DomainsKnown && facts.Telemetry
}
