package balance

import (
	"time"

	"berth/coordinator/cluster"
)

// Balancer is one way to tell whether a cluster is even, and which VMs had better move.
type Balancer struct {
	Name       string // in policies, plans and metrics
	Doc        string // one sentence for people
	Unit       string // of its figure of a cluster
	Parameters []Parameter

	// Propose looks at the cluster and proposes moves, the best first. It is pure. With none, why says why not.
	Propose func(s *Situation) (proposals []Proposal, why string)
	// Figure is how uneven the cluster is; lower is better.
	Figure func(s *Situation) float64
}

// Parameter is one number that a policy can give a balancer.
type Parameter struct {
	Name        string // as in policies: HighVMCount
	Doc         string
	Default     float64
	Least, Most float64
	Whole       bool // only whole numbers
}

// Situation is what a balancer sees. Nodes are indexes into the columns.
type Situation struct {
	Columns    *cluster.Columns
	Parameters map[string]float64 // all of the balancer's
	VMs        []Resting          // of all nodes, by ID
	Out        []bool             // by node: it takes part in no move: excluded, not up, migrating already
	At         time.Time
	History    *History
}

// Resting is a VM on its node.
type Resting struct {
	VM
	At      int  // its node
	Movable bool // balancing may move it now
}

// Proposal is one move that would help.
type Proposal struct {
	VM      int   // index into the situation's VMs
	Targets []int // nodes that would be better off; the engine chooses among them, and its own
	Reason  string
}
