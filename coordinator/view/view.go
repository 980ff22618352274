package view

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/view/wordindex"
	"berth/shared/units"
)

// View is all that is known about the cluster at one moment, with all accounting done: what a decision is made on. It is
// immutable.
type View struct {
	At    time.Time
	Index uint64 // Raft index of the hard facts
	Nodes NodeList

	clusters map[string]*clusterView // by name
	gathered *gathered
	held     reserved
	strays   strays
	words    *wordindex.Index // nil in a what-if: its base has it
	roster   *roster          // nil in a what-if: its base has it
	storage  *storage         // nil in a what-if: its base has it

	// A what-if is another view but for one VM that is gone from one node.
	base    *View
	reduced *NodeView   // the node without it
	gone    *Allocation // of the VM
}

// clusterView is one cluster of a View.
type clusterView struct {
	Record   model.Resource
	Settings model.Settings
}

func newClusterView(record model.Resource) *clusterView {
	return &clusterView{Record: record, Settings: model.SettingsOf(&record)}
}

func clustersOf(records []model.Resource) map[string]*clusterView {
	clusters := map[string]*clusterView{model.DefaultCluster: newClusterView(model.DefaultClusterRecord())}
	for i := range records {
		clusters[records[i].Name] = newClusterView(records[i])
	}
	return clusters
}

// clusterOf is the cluster of a node. One whose cluster is not there has the defaults.
func (v *View) clusterOf(node model.Node) *clusterView {
	if found := v.clusters[node.Cluster]; found != nil {
		return found
	}
	return v.clusters[model.DefaultCluster]
}

// Cluster is the record of a cluster by name, and its settings; false if the view has none of that name.
func (v *View) Cluster(name string) (model.Resource, model.Settings, bool) {
	found := v.clusters[name]
	if found == nil {
		return model.Resource{}, model.DefaultSettings(), false
	}
	return found.Record, found.Settings, true
}

// NodeView is one node of a View with its accounting done, in-flight work included.
type NodeView struct {
	Node     model.Node
	Settings model.EffectiveSettings
	Facts    model.NodeFacts

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

	strays []string // UUIDs of domains that hold memory here, and are no VM that the node holds by its record
	ran    int      // domains that run, and are VMs that the node holds
	odd    []string // IDs of the VMs that the node holds and that it does not show to run
	widest int      // vCPUs of the widest allocation, or more
}

// Allocation is what one domain or reservation takes of a node.
type Allocation struct {
	VM       string // UUID
	Name     string
	Memory   units.Bytes
	VCPUs    int
	Young    bool        // not yet wholly in the telemetry: charged in full on the physical ledger
	InFlight bool        // a reservation of a live operation
	Foreign  bool        // not Berth's own
	Fixed    bool        // nobody may move it
	Leaving  bool        // a live operation is taking it to another node
	HA       bool        // Berth starts it elsewhere when its node has failed
	Next     units.Bytes // memory of an HA VM at its next start, if that takes more; else 0

	CPU    float64     // CPUs that it uses now; 0 when that is not known
	Frees  units.Bytes // what the physical ledger gets back when it leaves, as far as that is known
	Labels []string    // by which groups take it in

	// Resident are the customer keys that the VM shows to others, and Owner whose they are.
	Resident []model.ResidentKey
	Owner    model.Owner
}
