package balance

import (
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// Fleet is one cluster as the leader's loops see it at one moment.
type Fleet struct {
	At       time.Time
	Cluster  string        // name
	View     *cluster.View // with everything in flight
	Settings cluster.Settings
	Policy   placement.Policy
	Balancer Chosen
	// DrainIgnoresVMRules tells that hard rules among VMs do not keep a VM on a node that is emptied: enforcement repairs
	// them afterwards (placement-semantics 4.7). Hard rules about nodes always hold.
	DrainIgnoresVMRules bool

	// DisperseAccounts tells that balancing keeps the VMs of each customer spread over the nodes.
	DisperseAccounts bool

	Groups []cluster.Group // of the cluster, labels expanded, by name
	VMs    []VM            // Berth's own that a node holds, by ID
	// Recent are the cluster's plans, newest first: what was moved, what was predicted and what came of it.
	Recent []cluster.Plan
	// History is kept by the caller from pass to pass, one for each cluster.
	History *History

	// Ask is what placement is asked for a VM, all of whose fields but Leave, Among and Unit are filled in. Current is where the VM is.
	Ask func(vm string, purpose placement.Purpose) (placement.Request, error)
	// Seed gives each decision its own.
	Seed func() uint64
}

// VM is a running VM as the loops see it.
type VM struct {
	ID, Name string
	Node     string // ID
	NodeName string
	Memory   units.Bytes
	VCPUs    int
	CPU      float64 // CPUs that it uses now; 0 when not known
	CPUKnown bool

	// Busy tells what works on it or why it cannot move at all, in words: an operation, paused, its node silent. Empty: nothing.
	Busy       string
	Migration  cluster.Migration
	Unbalanced bool      // it, its node or one of its groups is left alone by balancing
	MovedAt    time.Time // zero: never

	Owner string // what people call the customer that it belongs to; empty: nobody's
	// Concentrated tells that its offer wants the VMs of the customer together: it is not moved to disperse them.
	Concentrated bool
}
