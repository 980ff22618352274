package cluster

import (
	"time"

	"berth/shared/units"
)

// View is an immutable picture of the cluster at one moment: what a decision is made on.
type View struct {
	At    time.Time
	Index uint64      // Raft index of the hard facts
	Nodes []*NodeView // by node ID

	clusters map[string]*clusterView // by name
	gathered *gathered
	roster   *roster  // nil in a what-if: its base has it
	storage  *storage // likewise

	// A what-if is another view but for one VM that is gone from one node.
	base    *View
	reduced *NodeView   // the node without it
	gone    *Allocation // of the VM
}

// clusterView is one cluster of a View.
type clusterView struct {
	Record   Resource
	Settings Settings
}

func newClusterView(record Resource) *clusterView {
	return &clusterView{Record: record, Settings: SettingsOf(&record)}
}

// clusterOf is the cluster of a node. One whose cluster is not there has the defaults.
func (v *View) clusterOf(node Node) *clusterView {
	if found := v.clusters[node.Cluster]; found != nil {
		return found
	}
	return v.clusters[DefaultCluster]
}

// Cluster is the record of a cluster by name, and its settings; false if the view has none of that name.
func (v *View) Cluster(name string) (Resource, Settings, bool) {
	found := v.clusters[name]
	if found == nil {
		return Resource{}, DefaultSettings(), false
	}
	return found.Record, found.Settings, true
}

// NodeView is one node of a View with its accounting done, in-flight work included.
type NodeView struct {
	Node     Node
	Settings EffectiveSettings
	Facts    NodeFacts

	// The promised ledger: every domain of the node and everything in flight, at full size, each VM once.
	PromisedLimit units.Bytes // physical memory times the RAM contention ratio
	PromisedUsed  units.Bytes
	// The physical ledger: really free, less everything in flight and the VMs that are younger than the telemetry. It may
	// be negative. Known only if PhysicalKnown.
	PhysicalFree  units.Bytes
	PhysicalKnown bool
	Borrowed      units.Bytes // taken off PhysicalFree because KSM and ballooning save it now

	VCPULimit float64 // CPUs times the CPU contention ratio
	VCPUsUsed int

	// Allocations are what the ledgers are made of, sorted by VM ID.
	Allocations []Allocation
}

// Allocation is what one domain or reservation takes of a node.
type Allocation struct {
	VM       string // UUID
	Name     string
	Memory   units.Bytes
	VCPUs    int
	Young    bool // not yet wholly in the telemetry: charged in full on the physical ledger
	InFlight bool // a reservation of a live operation
	Foreign  bool // not Berth's own
	Fixed    bool // nobody may move it
	Leaving  bool // a live operation is taking it to another node
	HA       bool // Berth starts it elsewhere when its node has failed

	CPU    float64     // CPUs that it uses now; 0 when that is not known
	Frees  units.Bytes // what the physical ledger gets back when it leaves, as far as that is known
	Labels []string    // by which groups take it in

	// Resident are the customer keys that the VM shows to others, and Owner whose they are.
	Resident []ResidentKey
	Owner    Owner
}

// Reservation is what a live operation holds on a node.
type Reservation struct {
	Node      string
	VM        string
	Name      string
	Memory    units.Bytes
	VCPUs     int
	Operation string

	Volumes []VolumeOrder // that the operation makes there
}
