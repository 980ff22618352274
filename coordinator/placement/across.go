package placement

import "berth/coordinator/cluster"

// Search is a request that more than one cluster may take: which, and how a planner puts them in order.
type Search struct {
	Options []Option // by cluster name
	Planner string   // of the offer, or what its zone has by default
	// Level is where the planner puts things in order: LevelCluster, or LevelPod and then clusters inside each pod.
	Level string
	// Weight is user.vm.dispersion.weight, 0 to 1; the used capacity weighs 1 less that.
	Weight float64
	// Capacity is which used share counts: CapacityCPU, CapacityRAM or CapacityCombined.
	Capacity string
	// LastNode is the node ID that the VM ran on last: it is tried first, whatever the order. Empty: none is.
	LastNode string
	// Bound tells why there is one option only, in words: "vdc/a names cluster east", "its root disk is in cluster east".
	// Then nothing is put in order and no threshold is looked at. Empty: nothing binds the VM.
	Bound string
}

// Option is one cluster of a search: what is asked of its nodes, and by which policy.
type Option struct {
	Cluster   string // name
	Pod       string // name; empty: the cluster is in none, and counts as a pod of its own
	Request   Request
	Policy    Policy
	Threshold float64 // used share of CPU or RAM, with the request, above which the cluster is left out; 0: any will do
}

// Tried is what a search found of one cluster, in the order in which they were tried; those left out come last.
type Tried struct {
	Cluster    string  `json:"cluster"`
	Pod        string  `json:"pod,omitempty"`
	Used       float64 `json:"used"`                  // share of its capacity
	AccountVMs int     `json:"account_vms,omitempty"` // of the VM's customer, running and on their way
	PodVMs     int     `json:"pod_vms,omitempty"`     // likewise, in the pod
	Total      int     `json:"total,omitempty"`       // likewise, everywhere
	Weight     float64 `json:"weight"`                // lower is tried first
	LeftOut    string  `json:"left_out,omitempty"`    // why it was not tried, in words
	Outcome    Outcome `json:"outcome,omitempty"`     // empty: it was not tried
	Reason     string  `json:"reason,omitempty"`      // of a refusal
}

// PlaceAcross decides in which cluster and on which node the VM goes: the options in the planner's order until one has a node.
func PlaceAcross(view *cluster.View, search Search, seed uint64) Decision {
	var decision Decision
	for _, option := range search.Options {
		decision = Place(view, option.Request, option.Policy, seed)
		if decision.Outcome != Refused {
			break
		}
	}
	return decision
}
