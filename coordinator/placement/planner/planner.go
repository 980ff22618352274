// Package planner has the ways to put clusters and nodes in order before they are weighed: each puts the clusters that a VM
// may go to in order, and cuts the nodes of one into tiers. A cluster, and then a tier, is looked at only when the ones
// before it have no node.
//
// A new planner is one file, one line in all.go and one golden test.
package planner

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"berth/coordinator/placement/rule"
)

// Planner puts clusters in order and cuts candidates into tiers.
type Planner struct {
	Name string // in offers, zones, policies and explanations
	Doc  string // one sentence for people

	// Accounts tells that the planner looks at where the customer's VMs are, Kept that it counts those that are stopped
	// too, where they ran last.
	Accounts, Kept bool
	// Pools tells that disks go first to the pools with the fewest volumes of the customer, and not to those with most room.
	Pools bool
	// Together tells that the customer's VMs are to be near each other: pods count at every level, and balancing does not
	// spread them.
	Together bool

	// Order puts places in order. They come by used capacity, and ties stay as they are. It is pure.
	Order func(places []Place, terms Terms)

	// Tiers takes the candidates as indexes into the columns, in order, and returns each of them in one tier, the first tier
	// first. It is pure. Nil: all stand in one tier. Tier says of the first tier what its nodes have.
	Tiers func(in *rule.Input, candidates []int) [][]int
	Tier  string
}

// Place is a cluster that a VM may go to, as a planner sees it.
type Place struct {
	Cluster string
	Pod     string // what it is in: a name that no other pod has

	Used, PodUsed      float64 // shares of capacity, of the cluster and of its pod
	VMs, PodVMs, Total int     // of the customer: in the cluster, in its pod, everywhere

	Special int // labels of its nodes that few VMs need: not the planner's matter

	// Weight is what the planner makes of the cluster, and PodWeight, if it looks at pods, of its pod; lower is tried first.
	Weight, PodWeight float64
}

// Terms are on what the order is made.
type Terms struct {
	Pods   bool    // pods come in order first, and then clusters inside each pod
	Weight float64 // of dispersion, 0 to 1
	Owned  bool    // the VM has a customer
}

// ByCapacity puts places into the order that planners begin with: by used capacity, then by name.
func ByCapacity(places []Place) {
	slices.SortFunc(places, func(a, b Place) int { return cmp.Or(cmp.Compare(a.Used, b.Used), cmp.Compare(a.Cluster, b.Cluster)) })
}

// arrange weighs the places and puts them in order: by their own weight, or with pods by that of the pod first, pods of the
// same weight by used capacity.
func arrange(places []Place, pods bool, weigh func(used float64, vms, total int) float64) {
	for i := range places {
		one := &places[i]
		one.Weight = weigh(one.Used, one.VMs, one.Total)
		if pods {
			one.PodWeight = weigh(one.PodUsed, one.PodVMs, one.Total)
		}
	}
	slices.SortStableFunc(places, func(a, b Place) int {
		if order := comparePods(&a, &b); pods && order != 0 {
			return order
		}
		return cmp.Compare(exact(a.Weight), exact(b.Weight))
	})
}

func comparePods(a, b *Place) int {
	if a.Pod == b.Pod {
		return 0
	}
	return cmp.Or(cmp.Compare(exact(a.PodWeight), exact(b.PodWeight)), cmp.Compare(a.PodUsed, b.PodUsed), cmp.Compare(a.Pod, b.Pod))
}

// exact takes the noise of floating point off a weight, so that what is equal on paper is equal.
func exact(weight float64) float64 {
	const steps = 1e9
	return math.Round(weight*steps) / steps
}

// tiersBy puts candidates with the same figure into one tier, the lowest first.
func tiersBy(candidates []int, figure func(node int) int) [][]int {
	var tiers [][]int
	var figures []int
	for _, node := range candidates {
		at, there := slices.BinarySearch(figures, figure(node))
		if !there {
			figures, tiers = slices.Insert(figures, at, figure(node)), slices.Insert(tiers, at, nil)
		}
		tiers[at] = append(tiers[at], node)
	}
	return tiers
}

// PodOf is the unique name of a cluster's pod; a cluster in no pod is a pod of its own.
func PodOf(cluster, pod string) string {
	if pod == "" {
		return "cluster/" + cluster
	}
	return "pod/" + pod
}

// PodName is the name of the pod that PodOf was given; empty for a cluster in no pod.
func PodName(pod string) string {
	name, is := strings.CutPrefix(pod, "pod/")
	if !is {
		return ""
	}
	return name
}
