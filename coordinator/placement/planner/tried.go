package planner

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Outcome is the result of a decision.
type Outcome string

// The outcomes of a decision.
const (
	Placed  Outcome = "placed"
	Stay    Outcome = "stay"    // the VM's own node is the best one
	Refused Outcome = "refused" // no node fits
)

// Across is how clusters were ordered, kept with the decision.
type Across struct {
	Planner  string  `json:"planner,omitempty"`
	Level    string  `json:"level,omitempty"`
	Weight   float64 `json:"weight,omitempty"`
	Capacity string  `json:"capacity,omitempty"`
	Bound    string  `json:"bound,omitempty"`   // why there was only one option
	Last     string  `json:"last,omitempty"`    // name of the node that was tried first because the VM ran there last
	Refused  string  `json:"refused,omitempty"` // why it was not taken; empty: it was
	Owned    bool    `json:"owned,omitempty"`   // the VM has a customer
	Omitted  int     `json:"omitted,omitempty"` // clusters that Tried leaves out
	// CPUWeight is the weight of CPU in the capacity type combined; 0 in decisions of releases that had one half.
	CPUWeight float64 `json:"cpu_weight,omitempty"`
}

// Tried is what a search found about one cluster. They are in the order of the search; those left out come last.
type Tried struct {
	Cluster    string  `json:"cluster"`
	Pod        string  `json:"pod,omitempty"`
	Used       float64 `json:"used"`                  // share of its capacity
	AccountVMs int     `json:"account_vms,omitempty"` // of the VM's customer: running, or on their way
	PodVMs     int     `json:"pod_vms,omitempty"`     // the same count in the pod
	Total      int     `json:"total,omitempty"`       // the same count everywhere
	Weight     float64 `json:"weight"`                // lower is tried first
	LeftOut    string  `json:"left_out,omitempty"`    // why it was not tried, in words
	Outcome    Outcome `json:"outcome,omitempty"`     // empty: it was not tried
	Reason     string  `json:"reason,omitempty"`      // of a refusal

	PodUsed   float64 `json:"pod_used,omitempty"`
	PodWeight float64 `json:"pod_weight,omitempty"`
	// CPU and RAM are the shares of the cluster that would be used with the VM, where a Threshold counts.
	CPU       float64 `json:"cpu,omitempty"`
	RAM       float64 `json:"ram,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	Special   int     `json:"special,omitempty"` // labels of its nodes that few VMs need
}

// Order sorts places, which come by used capacity, as the planner wants.
func (a *Across) Order(places []Place) []Tried {
	if p, known := ByName(cmp.Or(a.Planner, model.DefaultPlanner)); known {
		p.Order(places, Terms{Pods: a.Level == model.LevelPod, Weight: a.Weight, Owned: a.Owned})
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(a.Special, b.Special) })
	tried := make([]Tried, 0, len(places))
	for _, one := range places {
		tried = append(tried, Tried{
			Cluster: one.Cluster, Pod: PodName(one.Pod), Used: one.Used, AccountVMs: one.VMs, PodVMs: one.PodVMs, Total: one.Total,
			Weight: one.Weight, PodUsed: one.PodUsed, PodWeight: one.PodWeight,
			Special: one.Special,
		})
	}
	return tried
}

// PutLast moves what is left out behind the others.
func PutLast(tried []Tried) {
	slices.SortStableFunc(tried, func(a, b Tried) int {
		switch {
		case (a.LeftOut == "") == (b.LeftOut == ""):
			return 0
		case a.LeftOut == "":
			return -1
		default:
			return 1
		}
	})
}
