package cluster

import (
	"time"

	"berth/shared/units"
)

// Liveness is how well a node is heard.
type Liveness string

// How well a node is heard. Silence is not death: none of these says anything about its VMs.
const (
	Up          Liveness = "up"
	Suspect     Liveness = "suspect"     // silent for more than three telemetry intervals
	Unreachable Liveness = "unreachable" // no session, or silent for 30 s
	Degraded    Liveness = "degraded"    // the agent answers, libvirt does not
)

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
)

// Holds tells whether a domain in this state has memory on its node.
func (s DomainState) Holds() bool {
	switch s {
	case DomainRunning, DomainPaused, DomainPausedMigration, DomainCrashed, DomainUnknown:
		return true
	default:
		return false
	}
}

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
	Operation string // likewise
	JobActive bool
}

// NodeFacts are what is known of a node without Raft, at one moment. Times are the coordinator's.
type NodeFacts struct {
	Liveness       Liveness
	LivenessReason string // in words, when not up

	Inventory     bool // an inventory has arrived; without it the next fields mean nothing
	InventoryAt   time.Time
	Memory        units.Bytes // physical
	CPUs          int
	DomainTypes   []string
	MigrationURI  string
	Domains       []Domain // by UUID
	DomainsKnown  bool     // the last listing succeeded
	InventoryFrom string   // incarnation that sent it

	Telemetry   bool // a sample has arrived; without it the next fields mean nothing
	TelemetryAt time.Time
	Available   *units.Bytes // memory really free now; nil when it could not be read
	KSMSaved    *units.Bytes
	Load1       *float64
	CPUBusy     *float64 // 0 to 1
}
