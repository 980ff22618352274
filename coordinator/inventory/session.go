package inventory

import (
	"errors"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
)

// ErrStaleSession says that a session was opened by a message that is older than what is known of the node.
var ErrStaleSession = errors.New("the node has a newer session")

// Session is one agent's connection. What it reports counts until it is closed or the node opens another one.
type Session struct {
	store *Store
	node  string
}

// OpenSession begins a node's session with the hello of its agent and the sequence of the message that it came in. It
// replaces the session that the node had. Until the session's first inventory, the node's domains are not known. The
// error is ErrStaleSession when the same incarnation has sent newer messages before.
func (s *Store) OpenSession(nodeID string, hello *berthv1.Hello, sequence uint64) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	n := s.node(nodeID)
	if hello.GetIncarnation() == n.incarnation && n.incarnation != "" && sequence <= n.sequence {
		return nil, ErrStaleSession
	}
	s.changes.note(nodeID)
	s.stirred.note(nodeID)
	if was := BootOf(n.incarnation); was != BootOf(hello.GetIncarnation()) && n.domainsKnown {
		n.before = model.BootFacts{Boot: was, Domains: n.shown}
		n.lent.Store(true)
	}
	n.incarnation, n.sequence = hello.GetIncarnation(), sequence
	n.session = &Session{store: s, node: nodeID}
	n.openedAt, n.heardAt, n.listed = now, now, false
	if n.metAt.IsZero() {
		n.metAt = now
	}
	n.release, n.lacks = hello.GetVersion(), capability.Missing(hello.GetCapabilities())
	n.watchdog = n.watchdogOf(hello.GetWatchdogSeconds())
	n.hardware, n.source = hello.GetHardware(), hello.GetHardwareSource()
	n.libvirtDown, n.libvirtSays, n.ailments, n.sickSince = false, "", nil, time.Time{}
	n.domainsKnown = false
	n.working = make(map[string]bool)
	for _, operation := range hello.GetRunningOperations() {
		n.working[operation] = true
	}
	s.recount(nodeID, n)
	if n.inventory == nil {
		s.untold[nodeID] = true
	}
	s.publishLiveness(nodeID, now)
	return n.session, nil
}

// Keep notes the pace that the agent was told. Until then it is that of a small fleet, or of the session before.
func (x *Session) Keep(pace model.Pace) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if n := x.store.nodes[x.node]; n != nil && n.session == x {
		n.pace = pace
		x.store.changes.note(x.node)
		x.store.stirred.note(x.node)
		x.store.turning.sooner(x.node, x.store.turns(n, x.store.now()))
		x.store.publishLiveness(x.node, x.store.now()) // one that was silent for too long may not be so by another pace
	}
}

// CalledFrom notes the IP address that the agent calls from, as this member sees it.
func (x *Session) CalledFrom(address string) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if n := x.store.nodes[x.node]; n != nil && n.session == x {
		n.from = address
		x.store.changes.note(x.node)
	}
}

// Close ends the session. It does nothing if the node has another one by now.
func (x *Session) Close(reason string) {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[x.node]
	if n == nil || n.session != x {
		return
	}
	now := s.now()
	s.changes.note(x.node)
	s.stirred.note(x.node)
	n.session, n.closedAt, n.closedWhy = nil, now, reason
	delete(s.untold, x.node)
	s.turning.sooner(x.node, s.turns(n, now))
	s.recount(x.node, n)
	s.publishLiveness(x.node, now)
}

// Report takes one message in. It is false, and the message has no effect, when its session is not the node's present
// one or its sequence is not newer than the last.
func (x *Session) Report(message *berthv1.SessionRequest) bool {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[x.node]
	if n == nil || n.session != x || message.GetSequence() <= n.sequence {
		return false
	}
	s.changes.note(x.node)
	now := s.now()
	n.sequence, n.heardAt = message.GetSequence(), now
	switch m := message.GetMessage().(type) {
	case *berthv1.SessionRequest_Inventory:
		s.reportInventory(x.node, n, m.Inventory, now)
		if !n.tooMany {
			n.endings = endingsOf(m.Inventory, now)
			s.tellLastRuns(x.node, n, m.Inventory)
		}
	case *berthv1.SessionRequest_InventoryDigest:
		if n.has(m.InventoryDigest.GetDigest()) {
			s.reportInventory(x.node, n, n.inventoryWith(m.InventoryDigest), now)
		}
	case *berthv1.SessionRequest_Telemetry:
		n.reportTelemetry(m.Telemetry, now)
	case *berthv1.SessionRequest_DomainChange:
		s.stirred.note(x.node)
		s.reportDomain(x.node, n, m.DomainChange, now)
	case *berthv1.SessionRequest_Libvirt:
		n.reportHealth(m.Libvirt, now)
	case *berthv1.SessionRequest_Progress:
		if concerns(s, x.node, m.Progress.GetOperationId()) && reportProgress(s, m.Progress, now) {
			s.feed.publish(Event{Kind: ProgressReported, At: now, Node: x.node, Operation: m.Progress.GetOperationId()})
		}
	case *berthv1.SessionRequest_Result:
		if concerns(s, x.node, m.Result.GetOperationId()) {
			delete(s.progress, m.Result.GetOperationId())
		}
		delete(n.working, m.Result.GetOperationId())
		if vm := m.Result.GetDomain().GetUuid(); !m.Result.GetRepeated() && !isFull(n.lastRuns, vm) && m.Result.GetDomain().GetLastRun() != nil {
			s.tellLastRun(x.node, n, m.Result.GetDomain())
		}
	}
	s.publishLiveness(x.node, now)
	return true
}

// mostDomains is how many domains of one node are kept, whatever is told of them. A list that has more is not believed: half of it would
// say that the other half is not there.
const mostDomains = 4096

// isFull tells that so much is known of a node's domains that another one is not taken in.
func isFull[T any](known map[string]T, uuid string) bool {
	_, there := known[uuid]
	return !there && len(known) >= mostDomains
}

// mostAilments is how many of a host's ailments are kept.
const mostAilments = 8

// reportHealth takes in whether libvirt can be used, and what else ails. Since when is the agent's word for a span, so that clocks that
// differ do not matter, and a new leader knows it too.
func (n *node) reportHealth(status *berthv1.LibvirtStatus, now time.Time) {
	n.libvirtDown, n.libvirtSays = !status.GetConnected(), status.GetError()
	n.ailments = status.GetAilments()[:min(len(status.GetAilments()), mostAilments)]
	if !n.libvirtDown && len(n.ailments) == 0 {
		n.sickSince = time.Time{}
		return
	}
	const longest = 30 * 24 * time.Hour
	since := now
	if told := status.GetSinceSeconds(); told > 0 {
		since = now.Add(-time.Duration(min(told, longest.Seconds()) * float64(time.Second)))
	}
	if n.sickSince.IsZero() || since.Before(n.sickSince) {
		n.sickSince = since
	}
}

// reportInventory replaces everything that is known of the node's domains, unless their listing failed.
func (s *Store) reportInventory(id string, n *node, report *berthv1.InventoryReport, now time.Time) {
	told, listed, shown := n.inventory != nil, n.domainsKnown, n.shown
	defer func() {
		if told != (n.inventory != nil) || listed != n.domainsKnown || !alike(shown, n.shown) {
			s.stirred.note(id)
		}
	}()
	if report.GetNode() != nil {
		n.inventory, n.inventoryAt, n.inventoryFrom = report.GetNode(), now, n.incarnation
		n.peers = peers(n.inventory.GetMigrationUri(), n.inventory.GetMigrationAddress())
		n.around = surroundingsOf(report.GetNode())
		s.hosts.tell(id, n, report.GetNode().GetHostUuid())
		delete(s.untold, id)
	}
	n.tooMany = len(report.GetDomains()) > mostDomains
	n.domainsKnown = !report.GetDomainsUnknown() && !n.tooMany
	n.digest = string(report.GetDigest())
	if !n.domainsKnown {
		n.digest = ""
		s.log.Warn("the node's domains could not be listed", "node", id, "error", report.GetDomainsError(), "domains", len(report.GetDomains()))
		return
	}
	// What has changed at the first listing of a session did so before the session began, or its event is on its way.
	began := now
	if !n.listed {
		began, n.listed = n.openedAt, true
	}
	are := make(map[string]domain, len(report.GetDomains()))
	for _, wire := range report.GetDomains() {
		if wire.GetUuid() != "" && wire.GetState() != berthv1.DomainState_DOMAIN_STATE_ABSENT {
			s.noteDevices(id, n.domains[wire.GetUuid()].wire, wire)
			are[wire.GetUuid()] = n.seen(wire, report.GetNode(), began, now)
		}
	}
	before := n.domains
	n.domains = are
	n.show()
	s.relist(id, shown, n.shown)
	for uuid, was := range before {
		if _, still := are[uuid]; !still {
			s.domainMoved(id, was.wire, stateOf(was.wire), model.DomainAbsent, "", now)
		}
	}
	for uuid, is := range are {
		was := model.DomainAbsent
		if known, there := before[uuid]; there {
			was = stateOf(known.wire)
		}
		if was != stateOf(is.wire) {
			s.domainMoved(id, is.wire, was, stateOf(is.wire), "", now)
		}
	}
	s.recount(id, n)
}

// seen is what is kept of a listed domain: since when it is in its state. One that is new here began when the node says,
// by the age that the node itself gives it, and else at the latest moment that it can have.
func (n *node) seen(wire *berthv1.Domain, inventory *berthv1.NodeInventory, began, now time.Time) domain {
	known, there := n.domains[wire.GetUuid()]
	switch {
	case there && stateOf(known.wire) == stateOf(wire):
		began = known.since
	case !there && wire.GetStartedAt().IsValid() && inventory.GetCollectedAt().IsValid():
		age := inventory.GetCollectedAt().AsTime().Sub(wire.GetStartedAt().AsTime())
		began = now.Add(-max(age, 0))
	}
	from := began
	switch {
	case there && known.runsOn(wire):
		from = known.from
	case there:
		from = now
	}
	return domain{wire: wire, since: began, from: from}
}

// reportDomain takes one lifecycle event in.
func (s *Store) reportDomain(id string, n *node, change *berthv1.DomainChange, now time.Time) {
	wire := change.GetDomain()
	uuid := wire.GetUuid()
	if uuid == "" {
		return
	}
	n.digest = "" // what the agent lists next is compared with nothing before this
	was := model.DomainAbsent
	known, there := n.domains[uuid]
	if there {
		was = stateOf(known.wire)
	}
	is := stateOf(wire)
	if !isFull(n.domains, uuid) {
		s.noteDevices(id, known.wire, wire)
	}
	switch {
	case is == model.DomainAbsent:
		delete(n.domains, uuid)
	case isFull(n.domains, uuid):
		n.tooMany, n.domainsKnown = true, false
		return
	default:
		one := domain{wire: wire, since: now, from: now}
		if there && was == is {
			one.since = known.since
		}
		if there && known.runsOn(wire) {
			one.from = known.from
		}
		n.domains[uuid] = one
	}
	n.ended(wire, now)
	s.tellLastRun(id, n, wire)
	disks := n.sourcesOf(uuid)
	n.showOne(uuid)
	s.recountOne(id, n, uuid)
	if _, listed := n.domains[uuid]; listed {
		s.showing.add(uuid, id)
	} else {
		s.showing.remove(uuid, id)
	}
	if are := n.sourcesOf(uuid); !slices.Equal(disks, are) {
		s.withDisk.replace(id, disks, are, n.shown)
	}
	if was != is {
		s.domainMoved(id, wire, was, is, change.GetEvent(), now)
	}
}

// reportTelemetry takes a sample in. It is as old as its collection was long.
func (n *node) reportTelemetry(sample *berthv1.NodeTelemetry, now time.Time) {
	const longest = 30.0 // seconds; what is more is a broken clock
	n.telemetry, n.watchdog = sample, n.watchdogOf(sample.GetWatchdogSeconds())
	n.telemetryAt, n.measuredAt = now, now
	if took := sample.GetCollectSeconds(); took > 0 {
		n.telemetryAt = now.Add(-time.Duration(min(took, longest) * float64(time.Second)))
	}
	n.show()
}

// watchdogOf reads after how many seconds a node resets itself. What cannot be one is none, nor is that of an agent which does not
// count the time that its host sleeps: it may arm a watchdog that stands still with its host.
func (n *node) watchdogOf(seconds float64) time.Duration {
	const most = float64(24 * time.Hour / time.Second)
	if slices.Contains(n.lacks, capability.SleptLeases) || !(seconds > 0 && seconds <= most) { // true for a NaN
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// domainMoved tells subscribers of a domain's new state.
func (s *Store) domainMoved(id string, wire *berthv1.Domain, was, is model.DomainState, event string, now time.Time) {
	moved := domainOf(domain{wire: wire, since: now}, nil)
	moved.State = is
	s.feed.publish(Event{Kind: DomainChanged, At: now, Node: id, Domain: moved, DomainWas: was, What: event})
}
