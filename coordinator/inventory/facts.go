package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// told is what is known of a node, joined, for as long as nothing is heard of it and the passing of time changes nothing.
type told struct {
	facts       model.NodeFacts
	from, until time.Time
}

// facts are what is known of a node. Several loops ask for those of all nodes, so they are joined once for as long as they last. The caller
// holds the lock.
func (s *Store) facts(id string, now time.Time) model.NodeFacts {
	n := s.nodes[id]
	if n == nil {
		return n.join(s.liveness(n, now))
	}
	last := n.told.Load()
	if last == nil || now.Before(last.from) || !now.Before(last.until) {
		last = &told{facts: n.join(s.liveness(n, now)), from: now, until: s.turns(n, now)}
		n.told.Store(last)
	}
	facts := last.facts
	if why := doubt(s, id, n); why != "" && facts.Liveness == model.Up {
		// What it says may be another machine's word: it counts like that of a node whose libvirt cannot be asked.
		facts.Liveness, facts.LivenessReason, facts.DomainsKnown = model.Degraded, why, false
	}
	return facts
}

// join makes the facts of a node, but for who doubts them; nil: nothing is known of it. The caller holds the store's lock.
func (n *node) join(liveness model.Liveness, reason string) model.NodeFacts {
	facts := model.NodeFacts{Liveness: liveness, LivenessReason: reason}
	if n == nil {
		return facts
	}
	facts.Hardware, facts.Source = n.hardware, n.source
	facts.SickSince = n.sickSince
	facts.Release, facts.Lacks = n.release, n.lacks
	facts.MetAt = n.metAt
	facts.HeardAt, facts.Boot, facts.Watchdog = n.heardAt, BootOf(n.incarnation), n.watchdog
	facts.Pace = n.pace
	if n.inventory != nil {
		facts.Inventory, facts.InventoryAt, facts.InventoryFrom = true, n.inventoryAt, n.inventoryFrom
		facts.Memory = units.Bytes(max(n.inventory.GetMemoryBytes(), 0))
		facts.CPUs = int(max(n.inventory.GetCpus(), 0))
		facts.DomainTypes = n.inventory.GetDomainTypes()
		facts.CalledFrom = n.from
		facts.MigrationURI = n.inventory.GetMigrationUri()
		facts.MigrationHost = n.inventory.GetMigrationAddress()
		facts.Peers = n.peers
		n.around.tell(&facts)
	}
	facts.Domains, facts.DomainsKnown, facts.Endings, facts.Before = n.shown, n.domainsKnown, n.endings, n.before
	facts.LastRuns = n.lastRuns
	n.lent.Store(true)
	facts.Working = slices.Sorted(maps.Keys(n.working))
	if n.telemetry != nil {
		facts.Telemetry, facts.TelemetryAt, facts.Ailing = true, n.telemetryAt, n.telemetry.GetAiling()
		facts.Available = amount(n.telemetry.MemoryAvailableBytes)
		if facts.Available == nil {
			facts.Available = amount(n.telemetry.MemoryFreeBytes) // less than is available, never more
		}
		facts.KSMSaved = amount(n.telemetry.KsmSavedBytes)
		facts.Load1 = figure(n.telemetry.Load1)
		facts.CPUBusy, facts.CPUSteal = figure(n.telemetry.CpuBusyRatio), figure(n.telemetry.CpuStealRatio)
		facts.CPUPressure = pressed(n.telemetry.GetCpuPressure())
		facts.MemoryPressure, facts.IOPressure = pressed(n.telemetry.GetMemoryPressure()), pressed(n.telemetry.GetIoPressure())
		facts.VCPUDelay = delay(n.telemetry.GetDomains())
	}
	return facts
}

// doubt says why what the node says is not believed; empty: it is. The caller holds the lock.
func doubt(s *Store, id string, n *node) string {
	if s.Doubt == nil {
		return ""
	}
	return s.Doubt(id, model.Machine{Hardware: n.hardware, Source: n.source, Boot: BootOf(n.incarnation)})
}

// BootOf is the boot that an incarnation belongs to: what stands before its last slash.
func BootOf(incarnation string) string {
	if at := strings.LastIndexByte(incarnation, '/'); at >= 0 {
		return incarnation[:at]
	}
	return incarnation
}

// liveness tells how well a node is heard, and if not up, why in words.
func (s *Store) liveness(n *node, now time.Time) (model.Liveness, string) {
	switch {
	case n == nil || n.session == nil && n.closedAt.IsZero():
		waited := now.Sub(s.since)
		return absence(waited), "not heard in the " + lasting(waited) + " that this coordinator leads"
	case n.session == nil:
		without := now.Sub(n.closedAt)
		reason := "no session for " + lasting(without)
		if n.closedWhy != "" {
			reason += ": " + n.closedWhy
		}
		return absence(without), reason
	}
	silent := now.Sub(n.heardAt)
	switch {
	case silent > n.pace.Unreachable():
		return model.Unreachable, "silent for " + lasting(silent)
	case silent > n.pace.Suspect():
		return model.Suspect, "silent for " + lasting(silent)
	case n.libvirtDown:
		return model.Degraded, strings.Join(append([]string{libvirtReason(n.libvirtSays)}, n.ailments...), "; ")
	case n.tooMany:
		return model.Degraded, fmt.Sprintf("it tells of more than %d domains: its list is not believed", mostDomains)
	case len(n.ailments) > 0:
		return model.Degraded, strings.Join(n.ailments, "; ")
	default:
		return model.Up, ""
	}
}

// turns is when the passing of time, after a moment, next changes what liveness tells of a node that is not heard meanwhile: how it
// counts, or the words, which round to seconds.
func (s *Store) turns(n *node, at time.Time) time.Time {
	switch {
	case n == nil || n.session == nil && n.closedAt.IsZero():
		return turn(s.since, at, model.SessionGrace)
	case n.session == nil:
		return turn(n.closedAt, at, model.SessionGrace)
	case at.Sub(n.heardAt) <= n.pace.Suspect():
		return n.heardAt.Add(n.pace.Suspect() + 1)
	default:
		return turn(n.heardAt, at, n.pace.Unreachable()+1)
	}
}

// turn is when the time since a moment rounds to another second, or comes to a bound.
func turn(since, at time.Time, bound time.Duration) time.Time {
	lasted := max(at.Sub(since), 0)
	next := since.Add(lasted.Round(time.Second) + time.Second/2)
	if lasted < bound {
		return earlier(next, since.Add(bound))
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// absence is how a node without a session counts: its agent gets SessionGrace to come back.
func absence(without time.Duration) model.Liveness {
	if without < model.SessionGrace {
		return model.Suspect
	}
	return model.Unreachable
}

func lasting(d time.Duration) string { return max(d, 0).Round(time.Second).String() }

// show makes the readers' list of domains anew, with what telemetry says of each. A telemetry sample that names a domain
// which is not listed is not believed: the inventory is what lists domains.
func (n *node) show() {
	samples := make(map[string]*berthv1.DomainTelemetry, len(n.telemetry.GetDomains()))
	for _, sample := range n.telemetry.GetDomains() {
		samples[sample.GetUuid()] = sample
	}
	shown := make([]model.Domain, 0, len(n.domains))
	for uuid, one := range n.domains {
		shown = append(shown, domainOf(one, n.ofRun(one, samples[uuid])))
	}
	slices.SortFunc(shown, func(a, b model.Domain) int { return cmp.Compare(a.UUID, b.UUID) })
	n.shown = shown
	n.lent.Store(false)
}

// showOne brings the readers' list up to date about one domain. Domains come and go one by one, on nodes that have many.
func (n *node) showOne(uuid string) {
	one, listed := n.domains[uuid]
	at, there := slices.BinarySearchFunc(n.shown, uuid, func(d model.Domain, uuid string) int { return cmp.Compare(d.UUID, uuid) })
	if !listed && !there {
		return
	}
	if n.lent.Swap(false) {
		n.shown = slices.Clone(n.shown)
	}
	switch {
	case !listed:
		n.shown = slices.Delete(n.shown, at, at+1)
	case there:
		n.shown[at] = domainOf(one, n.ofRun(one, n.sampleOf(uuid)))
	default:
		n.shown = slices.Insert(n.shown, at, domainOf(one, n.ofRun(one, n.sampleOf(uuid))))
	}
}

// ofRun is a sample of a domain, if it did not come before the run that the node shows now: a VM that was started again would have the
// memory of before.
func (n *node) ofRun(one domain, sample *berthv1.DomainTelemetry) *berthv1.DomainTelemetry {
	if one.from.After(n.measuredAt) {
		return nil
	}
	return sample
}

// sampleOf is what telemetry says of a domain; nil if nothing.
func (n *node) sampleOf(uuid string) *berthv1.DomainTelemetry {
	for _, sample := range n.telemetry.GetDomains() {
		if sample.GetUuid() == uuid {
			return sample
		}
	}
	return nil
}

func domainOf(one domain, sample *berthv1.DomainTelemetry) model.Domain {
	wire := one.wire
	shown := model.Domain{
		UUID: wire.GetUuid(), Name: wire.GetName(), State: stateOf(wire), Reason: wire.GetStateReason(),
		Memory: units.Bytes(max(wire.GetMemoryBytes(), 0)), VCPUs: int(max(wire.GetVcpus(), 0)),
		Managed: wire.GetManaged(), Epoch: EpochOf(wire.GetEpoch()), Operation: wire.GetOperationId(), JobActive: wire.GetJobActive(),
		Persistent: wire.GetPersistent(), Autostart: wire.GetAutostart(), Saved: wire.GetSaved(), PID: int(wire.GetProcessId()), Since: one.since,
	}
	for _, source := range wire.GetSources() {
		shown.Sources = append(shown.Sources, diskSource(source))
	}
	shown.Devices, shown.Bindings = DevicesFrom(wire.GetDevices()), bindingsFrom(wire.GetBindings())
	if sample != nil {
		shown.Resident, shown.CPU = amount(sample.RssBytes), figure(sample.CpuRatio)
		shown.Balloon, shown.Delay = amount(sample.BalloonBytes), figure(sample.VcpuDelayRatio)
		if told := sample.GetPressure(); told != nil {
			shown.Pressure = pressureOf(told)
		}
	}
	return shown
}

// pressureOf takes over what a domain waits for. What cannot be a percentage makes it unknown.
func pressureOf(told *berthv1.DomainPressure) *model.DomainPressure {
	cpu, memory, io := figure(&told.CpuSome), figure(&told.MemorySome), figure(&told.IoSome)
	if cpu == nil || memory == nil || io == nil {
		return nil
	}
	return &model.DomainPressure{CPU: *cpu, Memory: *memory, IO: *io}
}

// mostEpoch is far above any that a VM can come to have, and as far below the end of the numbers: the next one has to be higher.
const mostEpoch = 1 << 62

// EpochOf reads an epoch from the wire. One that Berth cannot have given is none.
func EpochOf(told uint64) uint64 {
	if told > mostEpoch {
		return 0
	}
	return told
}

// StateOf reads a domain's state from the wire. What this release does not know is unknown, never absent.
func StateOf(state berthv1.DomainState) model.DomainState {
	switch state {
	case berthv1.DomainState_DOMAIN_STATE_ABSENT:
		return model.DomainAbsent
	case berthv1.DomainState_DOMAIN_STATE_RUNNING:
		return model.DomainRunning
	case berthv1.DomainState_DOMAIN_STATE_PAUSED:
		return model.DomainPaused
	case berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION:
		return model.DomainPausedMigration
	case berthv1.DomainState_DOMAIN_STATE_SHUTOFF:
		return model.DomainShutoff
	case berthv1.DomainState_DOMAIN_STATE_CRASHED:
		return model.DomainCrashed
	case berthv1.DomainState_DOMAIN_STATE_ORPHAN:
		return model.DomainOrphan
	default:
		return model.DomainUnknown
	}
}

func stateOf(wire *berthv1.Domain) model.DomainState { return StateOf(wire.GetState()) }

// amount takes over an amount of bytes. What cannot be one is not known.
func amount(bytes *int64) *units.Bytes {
	if bytes == nil || *bytes < 0 {
		return nil
	}
	value := units.Bytes(*bytes)
	return &value
}

// delay is the percent of time in which a vCPU of some guests waited for a CPU, on average over all vCPUs; nil where none tells.
func delay(guests []*berthv1.DomainTelemetry) *float64 {
	var waited, vcpus float64
	for _, guest := range guests {
		if share := figure(guest.VcpuDelayRatio); share != nil && guest.GetVcpus() > 0 {
			waited, vcpus = waited+*share*float64(guest.GetVcpus()), vcpus+float64(guest.GetVcpus())
		}
	}
	if vcpus == 0 {
		return nil
	}
	percent := 100 * waited / vcpus
	return &percent
}

// pressed is the percent of the time in which something stood still; nil where the kernel does not tell.
func pressed(pressure *berthv1.Pressure) *float64 {
	if pressure == nil {
		return nil
	}
	return figure(&pressure.SomeAvg10)
}

// figure takes over a load or a share. What cannot be one is not known.
func figure(value *float64) *float64 {
	if value == nil || math.IsNaN(*value) || math.IsInf(*value, 0) || *value < 0 {
		return nil
	}
	return value
}

func libvirtReason(says string) string {
	if says == "" {
		return "libvirt cannot be used"
	}
	return "libvirt cannot be used: " + says
}
