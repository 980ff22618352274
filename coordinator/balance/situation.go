package balance

import (
	"time"

	"berth/coordinator/cluster"
)

// Situation is what a balancer sees: one cluster, now or as planned. Nodes are indexes into the columns.
type Situation struct {
	Columns    *cluster.Columns
	CPUs       []int              // by node: 0 if not known
	Parameters map[string]float64 // all of the balancer's
	VMs        []Resting          // of all nodes, by ID
	On         [][]int            // by node: indexes of its VMs, ascending
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
