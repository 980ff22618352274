package balance

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/units"
)

// Fleet is one cluster as the leader's passes see it at one moment.
type Fleet struct {
	At       time.Time
	Cluster  string     // name
	View     *view.View // with everything that is in flight
	Settings model.Settings
	Policy   policies.Policy
	Balancer Chosen
	// DrainIgnoresVMRules tells that a hard rule for VMs does not keep a VM on a node that is drained: enforcement repairs the
	// rule afterwards (SEMANTICS.md, "Drains"). Hard rules for nodes always hold.
	DrainIgnoresVMRules bool

	// DisperseAccounts tells that balancing keeps the VMs of each customer spread over the nodes.
	DisperseAccounts bool

	Groups []model.Group // of the cluster, labels expanded, by name
	VMs    []VM          // Berth's VMs that a node holds, by ID
	// Recent is the cluster's plans, newest first: what was moved, what was predicted, and what the effect was.
	Recent []model.Plan
	// History is kept by the caller from pass to pass, one for each cluster.
	History *History

	// Ask is the placement request for a VM, complete but for Leave, Among and Unit. Current is the node of the VM.
	Ask func(vm string, purpose placement.Purpose) (placement.Request, error)
	// Seed gives each decision a seed of its own.
	Seed func() uint64
}

// VM is a running VM as the passes see it.
type VM struct {
	ID, Name string
	Node     string // ID
	NodeName string
	Memory   units.Bytes
	VCPUs    int
	CPU      float64 // CPUs that it uses now; 0 when not known
	CPUKnown bool

	// Busy says in words what works on the VM or why it cannot move: an operation, paused, its node is silent. Empty: nothing.
	Busy       string
	Migration  model.Migration
	Unbalanced bool      // it, its node or one of its groups is left alone by balancing
	MovedAt    time.Time // zero: never

	Owner string // the name of its customer; empty: it has none
	// Concentrated tells that its offer keeps the customer's VMs together: it is not moved to spread them.
	Concentrated bool
}
