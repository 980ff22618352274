package model

import (
	"cmp"
	"time"

	"berth/coordinator/unanswered"
	"berth/shared/units"
)

// Defaults of node settings, used where neither the node nor its cluster says otherwise.
const (
	DefaultRAMRatio = 1.0       // physical memory is promised once
	DefaultCPURatio = 8.0       // vCPUs per CPU
	DefaultOverhead = units.GiB // FCO constraint processing: "an overhead (defaulting to 1GB)"
)

// DefaultCluster is the cluster that nodes join until clusters are declared.
const DefaultCluster = "default"

// Node is the replicated record of a hypervisor host.
type Node struct {
	ID                string       `json:"id"` // made at enrolment
	Name              string       `json:"name"`
	Cluster           string       `json:"cluster"`
	HostUUID          string       `json:"host_uuid,omitempty"`
	MachineID         string       `json:"machine_id,omitempty"`
	Settings          NodeSettings `json:"settings"` // only what was set on the node itself
	Maintenance       bool         `json:"maintenance,omitempty"`
	MaintenanceReason string       `json:"maintenance_reason,omitempty"`
	// Keys are the values that the node sets of the keys that its cluster declares; it has the defaults of the others.
	Keys       map[string]float64 `json:"keys,omitempty"`
	EnrolledAt time.Time          `json:"enrolled_at"`
	Revision   uint64             `json:"revision"` // Raft index of the last change

	Labels []string `json:"labels,omitempty"` // by which groups take it in, ascending
	// Management is true of a node that also carries the site's management, a coordinator for instance: even distribution
	// leaves it SPMVMCountGrace VMs short (oVirt's SPM host).
	Management bool `json:"management,omitempty"`
	// Unbalanced keeps balancing away from the node: it takes no VM from there and brings none.
	Unbalanced bool `json:"unbalanced,omitempty"`

	// Fence says how the node is proven to be off; zero: nothing can, and its VMs are restarted nowhere else.
	Fence FenceDevice `json:"fence,omitzero"`
	// Fencing is the last attempt at that; zero: there was none since the node last came up.
	Fencing Fencing `json:"fencing,omitzero"`
	// Boot is the last boot of the host that its agent has reported from; empty: none yet. Watchdog is how long after the end
	// of its last lease the host resets itself during that boot; 0: it is not known that it would.
	Boot     string        `json:"boot,omitempty"`
	Watchdog time.Duration `json:"watchdog,omitempty"`

	// Hardware is the identity of the machine that the node is, HardwareSource what kind of identity that is, LastBoot the boot
	// before Boot. Twin is a second machine that says it is the node.
	Hardware       string `json:"hardware,omitempty"`
	HardwareSource string `json:"hardware_source,omitempty"`
	LastBoot       string `json:"last_boot,omitempty"`
	Twin           Twin   `json:"twin,omitzero"`
	// Peers are the addresses (HOST:PORT, by commas) at which other nodes reach it, as it has reported last.
	Peers      string          `json:"peers,omitempty"`
	Unanswered unanswered.Mark `json:"unanswered,omitzero"` // what it has not answered of its starts
}

// ClusterName is the name of the node's cluster.
func (n *Node) ClusterName() string { return cmp.Or(n.Cluster, DefaultCluster) }

// KeyValue is the node's value of a key that its cluster declares.
func (n *Node) KeyValue(declared NodeKey) float64 {
	if value, set := n.Keys[declared.Name]; set {
		return value
	}
	return declared.Default
}

// NodeSettings are the knobs of a node. A nil field means the cluster's default.
type NodeSettings struct {
	RAMRatio *float64     `json:"ram_ratio,omitempty"`
	CPURatio *float64     `json:"cpu_ratio,omitempty"`
	Overhead *units.Bytes `json:"overhead,omitempty"`
}

// Ranges of node settings. They catch slips (a ratio of 150 for 150 %), not policy.
const (
	MinRAMRatio = 0.1
	MaxRAMRatio = 16.0
	MinCPURatio = 0.1
	MaxCPURatio = 64.0
	MaxOverhead = units.TiB
)

// EffectiveSettings are a node's settings with every default filled in.
type EffectiveSettings struct {
	RAMRatio float64
	CPURatio float64
	Overhead units.Bytes
}

// Over fills in what the node does not set with the defaults of its cluster.
func (s NodeSettings) Over(defaults EffectiveSettings) EffectiveSettings {
	effective := defaults
	if s.RAMRatio != nil {
		effective.RAMRatio = *s.RAMRatio
	}
	if s.CPURatio != nil {
		effective.CPURatio = *s.CPURatio
	}
	if s.Overhead != nil {
		effective.Overhead = *s.Overhead
	}
	return effective
}
