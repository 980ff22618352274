package faults

import (
	"context"
	"fmt"

	"berth/agent/telemetry"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	berthv1 "berth/shared/gen/berth/v1"
)

// pace is how often agents report.
func (w *World) pace() model.Pace { return model.PaceOf(len(w.hosts)) }

// welcome opens the session of a node's reports.
func (k *keeper) welcome(s *session, hello *berthv1.Hello, sequence uint64) {
	reports, err := k.facts.OpenSession(s.life.host.ID, hello, sequence)
	if err != nil {
		s.hangUp()
		return
	}
	reports.Keep(k.world.pace())
	s.reports = reports
	k.hear(s.life.host.ID)
}

// hear takes note of when a node is heard.
func (k *keeper) hear(node string) { k.heard.Hear(node, k.world.Now, untilLogged) }

// hello is the first message of a session.
func (l *life) hello() (*berthv1.Hello, uint64) {
	l.sequence++
	return &berthv1.Hello{
		NodeId: l.host.ID, Incarnation: fmt.Sprintf("%s/%d", l.boot, l.number), WatchdogSeconds: l.host.Dog.Time().Seconds(),
		RunningOperations: l.jobs.Running(), Hardware: l.host.Hardware, HardwareSource: model.HardwareProduct, Capabilities: l.host.knows(),
	}, l.sequence
}

// ended tells the reports' receiver that the agent works on an operation no more.
func (s *session) ended(result *berthv1.CommandResult, sequence uint64) {
	if m := s.member; (m.world.shares || m.world.Drifts) && m.term == s.term && s.reports != nil && s.reports.Report(&berthv1.SessionRequest{
		Sequence: sequence, Message: &berthv1.SessionRequest_Result{Result: result},
	}) {
		m.keeper.hear(s.life.host.ID)
	}
}

// report keeps telling the coordinator about the host, as long as the session lasts: a sample at its pace, and all its domains
// now and then.
func (s *session) report() {
	w := s.member.world
	if !w.fencing {
		return
	}
	every, whole := w.pace().Telemetry(), w.Now
	var tell func()
	tell = func() {
		switch h := s.life.host; {
		case !s.open || s.life.dead:
			return
		case h.Frozen:
		default:
			if !w.Now.Before(whole) {
				whole = w.Now.Add(w.pace().Inventory())
				s.send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: s.life.inventory()}})
			}
			s.health()
			s.send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{
				Telemetry: &berthv1.NodeTelemetry{
					WatchdogSeconds: h.Dog.Time().Seconds(), Ailing: s.life.ailing(), Domains: machine.Sample(h.Machine),
				},
			}})
		}
		w.After(every, tell)
	}
	tell()
}

// inventory is all that the host shows.
func (l *life) inventory() *berthv1.InventoryReport {
	h := l.host
	report := &berthv1.InventoryReport{Node: machine.Inventory(h.Machine)}
	domains, err := l.lister.List(context.Background(), plant.Shown{At: h.Machine, Bug: h.world.bug}, l.jobs.Known())
	if err != nil {
		report.DomainsUnknown, report.DomainsError = true, err.Error()
		return report
	}
	for _, d := range domains {
		report.Domains = append(report.Domains, telemetry.Domain(d))
	}
	if h.life != nil && h.life.jobs != nil {
		telemetry.AddEndings(report, h.life.jobs.Endings())
		telemetry.AddLastRuns(report, h.life.jobs.LastRuns())
	}
	return report
}

// send carries one report.
func (s *session) send(message *berthv1.SessionRequest) {
	l, at := s.life, s.member.world.Now
	l.sequence++
	message.Sequence = l.sequence
	s.up(func() {
		m := s.member
		if l.host == m.world.removed {
			m.keeper.listenTo(s, message)
			return
		}
		if m.term != s.term || s.reports == nil || !s.reports.Report(message) {
			return
		}
		m.keeper.hear(l.host.ID)
		if message.GetTelemetry() != nil {
			s.taken = at
		}
	})
}

// moment is the records with what this leader knows of the nodes.
func (k *keeper) moment(snapshot *state.Snapshot) evidence.Moment {
	return evidence.Moment{
		Records: snapshot, At: k.world.Now, Facts: k.factsOf, MayShow: k.facts.MayShow, WithDisk: k.facts.WithDisk, Removed: k.removedNodes(),
	}
}

// placeable tells whether a decision may choose a node, by what it reports.
func (k *keeper) placeable(node *model.Node) bool {
	facts := k.facts.Facts(node.ID, k.world.Now)
	return !node.Fenced() && facts.Liveness == model.Up && facts.Inventory && facts.DomainsKnown && facts.Telemetry && facts.Ailing == ""
}
