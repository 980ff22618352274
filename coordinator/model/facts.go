package model

import (
	"cmp"
	"path"
	"slices"
	"time"

	"berth/shared/units"
)

// How often agents report in a small fleet, and how long silence is borne there. The coordinator tells the intervals to every
// agent. See PaceOf for larger fleets.
const (
	TelemetryInterval = 2 * time.Second
	InventoryInterval = 30 * time.Second
	SuspectAfter      = missed * TelemetryInterval // also the oldest telemetry that a placement trusts
	UnreachableAfter  = 30 * time.Second
	SessionGrace      = 10 * time.Second // without any session
)

const (
	missed = 3 // samples that are missing before a node counts as silent

	// samplesASecond are how many the leader is to get of all nodes together.
	samplesASecond = 100
	// slowestSample bounds how old a figure may be that a decision rests on. Beyond 1,500 nodes the leader gets more samples
	// rather than older ones: thousands a second are little to it.
	slowestSample = 15 * time.Second
)

// Pace is how often an agent reports, and how long its silence is borne. It is told when its session opens, and holds for the
// whole session, so that a fleet that grows or shrinks makes nobody look silent. The zero value is that of a small fleet.
type Pace struct {
	Sample time.Duration // between two samples; 0: TelemetryInterval
}

// PaceOf is the pace in a fleet of so many nodes: slower the more there are.
func PaceOf(nodes int) Pace {
	sample := min(time.Duration(nodes)*time.Second/samplesASecond, slowestSample)
	if sample <= TelemetryInterval {
		return Pace{}
	}
	return Pace{sample}
}

// Telemetry is between two samples.
func (p Pace) Telemetry() time.Duration { return max(p.Sample, TelemetryInterval) }

// Inventory is between two whole inventories.
func (p Pace) Inventory() time.Duration { return max(missed*p.Sample, InventoryInterval) }

// Suspect is the silence after which a node is suspect, and the oldest telemetry that a placement trusts.
func (p Pace) Suspect() time.Duration { return missed * p.Telemetry() }

// Unreachable is the silence after which a node is unreachable.
func (p Pace) Unreachable() time.Duration { return max(p.Suspect(), UnreachableAfter) }

// Liveness is how well a node is heard.
type Liveness string

// How well a node is heard. Silence is not death: none of these says anything about its VMs.
const (
	Up          Liveness = "up"
	Suspect     Liveness = "suspect"     // silent for longer than Pace.Suspect, or its session has just ended
	Unreachable Liveness = "unreachable" // without a session for SessionGrace, or silent for Pace.Unreachable
	Degraded    Liveness = "degraded"    // the agent answers; libvirt, its disk or its storage does not
)

// Answers tells whether a node is heard now, in whatever state it is.
func (l Liveness) Answers() bool { return l == Up || l == Degraded }

// DomainState is what a node shows of one domain.
type DomainState string

// States of a domain as its node shows it.
const (
	DomainAbsent          DomainState = "absent"
	DomainRunning         DomainState = "running"
	DomainPaused          DomainState = "paused"           // by somebody
	DomainPausedMigration DomainState = "paused-migration" // by a migration, as source or target
	DomainShutoff         DomainState = "shutoff"
	DomainCrashed         DomainState = "crashed"
	DomainUnknown         DomainState = "unknown" // the agent could not tell
	// DomainOrphan is one whose process runs, and that libvirt has forgotten. The reason names the process.
	DomainOrphan DomainState = "orphan"
)

// Holds tells whether a domain in this state has memory on its node.
func (s DomainState) Holds() bool {
	switch s {
	case DomainRunning, DomainPaused, DomainPausedMigration, DomainCrashed, DomainUnknown, DomainOrphan:
		return true
	default:
		return false
	}
}

// Lives tells whether a domain in this state is a guest that runs, or will as soon as it is let.
func (s DomainState) Lives() bool { return s.Holds() && s != DomainCrashed && s != DomainUnknown }

// ReasonIOError is the reason of a domain that its hypervisor has paused because a disk of it failed or found no room.
const ReasonIOError = "i/o error"

// Domain is a libvirt domain as its node's agent sees it, Berth's own or not.
type Domain struct {
	UUID      string
	Name      string
	State     DomainState
	Reason    string // libvirt's word
	Memory    units.Bytes
	VCPUs     int
	Managed   bool   // carries Berth's metadata
	Epoch     uint64 // of that metadata
	Operation string // of that metadata
	JobActive bool
	// Persistent tells that libvirt keeps a definition of it.
	Persistent bool
	// Autostart tells that libvirt starts it when the host boots, although another node may have the VM by then.
	Autostart bool
	// Saved tells that it is off and libvirt keeps its memory: whoever starts it there lets it run on, although another node may have the
	// VM by then.
	Saved bool
	PID   int // of an orphan's process
	// Sources are what it writes to, if it has memory: nobody else may have them. Shared between readers, never changed.
	Sources []DiskSource
	// Devices are the disks and network interfaces that it runs with; nil: not known. Shared between readers, never changed.
	Devices []Device
	// Bindings are what keeps it on its node while it runs; nil: not known. Shared between readers, never changed.
	Bindings []Binding

	Since    time.Time       // first seen in this state here; the coordinator's time
	Resident *units.Bytes    // memory of the node that it has now; nil when it could not be read
	CPU      *float64        // CPUs that it used over the last interval; nil when that could not be read
	Balloon  *units.Bytes    // memory that its balloon leaves it now; nil when that could not be read
	Delay    *float64        // share of the time, 0 to 1, in which one of its vCPUs waited for a CPU; nil where nothing tells
	Pressure *DomainPressure // nil where nothing tells
}

// DomainPressure is the percent of the last ten seconds in which a thread of a domain waited.
type DomainPressure struct{ CPU, Memory, IO float64 }

// DiskSource is what is behind a disk of a domain: a path on its node, or a volume by libvirt's names.
type DiskSource struct {
	Path   string `json:"path,omitempty"`
	Pool   string `json:"pool,omitempty"`
	Volume string `json:"volume,omitempty"`
}

// Device is a disk or a network interface of a domain.
type Device struct {
	Kind    string // disk or interface, as libvirt calls its element
	Key     string // a disk's target (vda), an interface's MAC address
	Source  DiskSource
	Format  string // of a disk
	Network string // of an interface: a libvirt network's name, or bridge:NAME; of a disk over a network: rbd:POOL/IMAGE
	Media   bool   // a disk that is a drive for media
	XML     string // the element as a domain can be started with it; empty: it was not asked for

	Capacity units.Bytes // of a disk, as its guest sees it; 0: not known
}

// FileName is the name that a source has in its folder or pool.
func (s DiskSource) FileName() string {
	if s.Path == "" {
		return s.Volume
	}
	return path.Base(s.Path)
}

// Text names a source for people.
func (s DiskSource) Text() string {
	if s.Path != "" {
		return s.Path
	}
	return s.Pool + "/" + s.Volume
}

// Ending is how a guest ended on a node: while it ran there, and not because it was migrated away. Times are the coordinator's.
type Ending struct {
	At       time.Time
	RanSince time.Time // from then on the agent has watched it run without a pause, so it cannot have left for another node
	Whole    bool      // RanSince is when it was started on the node or came there
	Cause    EndingCause
}

// EndingCause is why a guest ended, as its hypervisor tells it.
type EndingCause string

// The causes of an end.
const (
	CauseUnknown     EndingCause = ""
	CauseShutDown    EndingCause = "shut_down"    // by the guest itself
	CauseDestroyed   EndingCause = "destroyed"    // by somebody
	CausePanicked    EndingCause = "panicked"     // the guest's kernel has told that it cannot go on
	CauseProcessDied EndingCause = "process_died" // QEMU ended without a word
)

// LastRun is what a guest ran with when it ended, of one whose devices were changed while it ran.
type LastRun struct {
	Epoch   uint64
	Devices []Device
}

// BootFacts are what a node showed last before it booted anew.
type BootFacts struct {
	Boot    string   // empty: nothing is known
	Domains []Domain // sorted by UUID; shared between readers, never changed
}

// PoolFacts are one storage pool of a node, as libvirt shows it.
type PoolFacts struct {
	Name      string
	Active    bool
	Capacity  units.Bytes
	Available units.Bytes
	Path      string // of its folder or device; empty: it has none
}

// NodeFacts are what is known of a node without Raft, at one moment. Times are the coordinator's.
type NodeFacts struct {
	Liveness       Liveness
	LivenessReason string // in words, when not up
	Pace           Pace   // of its session
	Ailing         string // why the node should get no VMs although it is up, in its agent's words; empty: it may

	// HeardAt is when this leader last heard anything of the node; zero: never. Boot is that of the host whose agent was
	// heard last, and Watchdog how long after its last lease that host resets itself; 0: it would not.
	HeardAt   time.Time
	MetAt     time.Time // when this leader heard of it for the first time; zero: not known
	Boot      string
	Hardware  string // identity of that host; empty: its agent does not tell
	Source    string // of the identity
	Watchdog  time.Duration
	SickSince time.Time // since when its agent says that it is degraded; zero: it does not
	Release   string    // of its agent
	Lacks     []string  // capabilities that its agent did not tell, ascending; shared between readers, never changed

	Inventory     bool // an inventory has arrived; without it the next fields mean nothing
	InventoryAt   time.Time
	Memory        units.Bytes // physical
	CPUs          int
	DomainTypes   []string
	MigrationURI  string   // as the node says; no more than a proposal (shared/destination)
	MigrationHost string   // where guests' memory is to be sent, as the node says; empty: the host of MigrationURI
	CalledFrom    string   // IP address that its agent calls from, as the leader sees it; empty: not known
	Peers         string   // addresses at which other nodes reach it, by commas; empty: not known
	Domains       []Domain // sorted by UUID; shared between readers, never changed
	DomainsKnown  bool     // the last listing succeeded
	// Endings are how guests ended here that are not here any more, by UUID, as far as the agent has seen it. Shared between
	// readers, never changed.
	Endings map[string]Ending
	// LastRuns are what guests ran with that are not here any more, by UUID, of those whose devices were changed here. Shared between
	// readers, never changed.
	LastRuns map[string]LastRun
	// Before is what the node showed last under another boot, if this leader has heard it then.
	Before        BootFacts
	InventoryFrom string // incarnation that sent it
	// Working are the operations that the agent was at work on when its session began, and has not told the end of since;
	// ascending. What they come to is not in the inventory yet.
	Working []string

	Pools         []PoolFacts // libvirt's storage pools, by name
	PoolsKnown    bool        // the last listing of pools succeeded
	Networks      []string    // libvirt's networks that are active, ascending
	Bridges       []string    // the host's own bridges, ascending
	NetworksKnown bool        // the last listings of both succeeded
	CPUModels     []string    // named CPU models that guests here can have, ascending; none: not known
	HostCPU       string      // fingerprint of the CPU that host-passthrough would show; empty: not known
	MachineTypes  []string    // ascending

	Telemetry   bool // a sample has arrived; without it the next fields mean nothing
	TelemetryAt time.Time
	Available   *units.Bytes // memory really free now; nil when it could not be read
	KSMSaved    *units.Bytes
	Load1       *float64
	CPUBusy     *float64 // 0 to 1
	CPUPressure *float64 // percent of the last ten seconds in which a task waited for a CPU; nil where the kernel has no PSI
	// MemoryPressure is the same of memory. VCPUDelay is the percent of time in which the vCPUs of its VMs waited for a CPU, on
	// average; nil where nothing tells.
	MemoryPressure, VCPUDelay *float64
	IOPressure                *float64 // percent like CPUPressure, of disks
	CPUSteal                  *float64 // 0 to 1: what a hypervisor below the node has taken of its CPUs
}

// Machine is the one that was heard last as this node.
func (f *NodeFacts) Machine() Machine {
	return Machine{Hardware: f.Hardware, Source: f.Source, Boot: f.Boot}
}

// Domain finds a domain by UUID. It is nil when the node shows none.
func (f *NodeFacts) Domain(uuid string) *Domain { return domainIn(f.Domains, uuid) }

// Domain finds a domain by UUID. It is nil when the node showed none.
func (b *BootFacts) Domain(uuid string) *Domain { return domainIn(b.Domains, uuid) }

func domainIn(domains []Domain, uuid string) *Domain {
	at, found := slices.BinarySearchFunc(domains, uuid, func(d Domain, id string) int { return cmp.Compare(d.UUID, id) })
	if !found {
		return nil
	}
	return &domains[at]
}

// ToldDevices are the devices of a guest that a node has told, and that it had told otherwise before.
type ToldDevices struct {
	VM      string // UUID
	Node    string // ID
	Epoch   uint64
	Devices []Device // nil: it is not to be started with them; it is only to be looked at
}
