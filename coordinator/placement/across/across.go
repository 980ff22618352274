// Package across decides in which cluster a VM goes, and there on which node: it puts the clusters that may take it into a
// planner's order and tries one after the other. It is pure. What it found about the clusters stays with the decision.
package across

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
)

// Search is a request that several clusters may take: these clusters, and how a planner orders them.
type Search struct {
	Options []Option // by cluster name
	Planner string   // of the offer, or what its zone has by default
	// Level is what the planner orders: LevelCluster, or LevelPod and then the clusters inside each pod.
	Level string
	// Weight is user.vm.dispersion.weight, 0 to 1. The used capacity weighs the rest.
	Weight float64
	// Capacity is the kind of used share that counts: CapacityCPU, CapacityRAM or CapacityCombined.
	Capacity string
	// CPUWeight is the weight of CPU in CapacityCombined, 0 to 1. Memory weighs the rest.
	CPUWeight float64
	// LastNode is the node ID that the VM ran on last, which is tried before all others. Empty: none is.
	LastNode string
	// Bound says in words why there is only one option: "vdc/a names cluster east", "its root disk is in cluster east". Then
	// nothing is ordered. Empty: nothing binds the VM.
	Bound string
	// Special are labels of nodes that few VMs need. For a VM that needs none of them, clusters with fewer such labels come
	// first, before the planner's order.
	Special []string
}

// Option is one cluster of a search: the request for its nodes, and its policy.
type Option struct {
	Cluster   string // name
	Pod       string // name; empty: the cluster is in no pod and counts as a pod of its own
	Request   placement.Request
	Policy    policies.Policy
	Threshold float64 // used share of CPU or RAM, with the request, above which the cluster is left out; 0: none
}

// Place decides in which cluster and on which node the VM goes. It tries the options in the planner's order until one
// has a node. The node that the VM ran on last is tried before all of them. A cluster without a node for the VM is not tried
// again.
//
// The same view, search and seed give the same decision. With one option, unless that crosses its threshold, it is the decision of
// placement.Place.
func Place(view *view.View, search Search, seed uint64) placement.Decision {
	s := &searching{view: view, search: &search, seed: seed}
	s.across = placement.Across{Planner: search.Planner, Bound: search.Bound}
	if decision, taken := s.onLast(); taken {
		return decision
	}
	switch len(search.Options) {
	case 0:
		return placement.Decision{
			At: view.At, Seed: seed, Outcome: placement.Refused, Reason: "no node fits: there is no cluster that the VM may go to",
		}
	case 1:
		if s.fill(&placement.Tried{Cluster: search.Options[0].Cluster}) {
			return s.inOrder()
		}
		decision := placement.Place(view, search.Options[0].Request, search.Options[0].Policy, seed)
		if s.across.Bound != "" || s.across.Last != "" {
			decision.Across = &s.across
		}
		return decision
	}
	return s.inOrder()
}

// searching is one search while it runs.
type searching struct {
	view   *view.View
	search *Search
	seed   uint64
	across placement.Across
	tried  []placement.Tried
	first  *Option // the first that was tried and refused
	used   map[string]view.Usage
}

// usage is what is used of each cluster, by name.
func (s *searching) usage() map[string]view.Usage {
	if s.used == nil {
		s.used = s.view.Usage()
	}
	return s.used
}

// option finds the option of a cluster.
func (s *Search) option(name string) *Option {
	at := slices.IndexFunc(s.Options, func(o Option) bool { return o.Cluster == name })
	if at < 0 {
		return nil
	}
	return &s.Options[at]
}

// onLast tries the node that the VM ran on last. If it is refused, the reason is kept and the VM is placed as a new one.
func (s *searching) onLast() (placement.Decision, bool) {
	node := s.view.Node(s.search.LastNode)
	if node == nil {
		return placement.Decision{}, false
	}
	option := s.search.option(cmp.Or(node.Node.Cluster, model.DefaultCluster))
	if option == nil {
		return placement.Decision{}, false
	}
	request := option.Request
	request.Last = node.Node.ID
	decision := placement.Place(s.view, request, option.Policy, s.seed)
	s.across.Last = cmp.Or(node.Node.Name, node.Node.ID)
	if decision.Winner == request.Last && decision.Outcome != placement.Refused {
		decision.Across = &s.across
		return decision, true
	}
	s.across.Refused = refusalOf(&decision, request.Last)
	return placement.Decision{}, false
}

// refusalOf says in words why a decision refuses a node.
func refusalOf(decision *placement.Decision, node string) string {
	answer, err := placement.WhyNot(*decision, node)
	if err != nil || len(answer.Why) == 0 {
		return decision.Reason
	}
	return answer.Why[0]
}

// inOrder tries the options in the planner's order.
func (s *searching) inOrder() placement.Decision {
	places := s.places()
	s.across.Level, s.across.Weight, s.across.Capacity = s.search.Level, s.search.Weight, s.search.Capacity
	s.across.CPUWeight = s.search.CPUWeight
	s.tried = s.across.Order(places)
	s.leaveOut()
	for i := range s.tried {
		one := &s.tried[i]
		if one.LeftOut != "" {
			continue
		}
		option := s.search.option(one.Cluster)
		columns := s.view.Columns(cmp.Or(option.Request.Cluster, option.Cluster))
		decision, why := placement.Try(s.view, columns, option.Request, option.Policy, s.seed)
		if decision.Outcome == placement.Refused {
			one.Outcome, one.Reason = placement.Refused, why
			if s.first == nil && decision.FailedPhase != "" { // and not for an invalid policy
				s.first = option
			}
			continue
		}
		one.Outcome = placement.Placed
		decision.Searched(s.across, s.tried)
		return decision
	}
	decision := s.refused()
	decision.Searched(s.across, s.tried)
	return decision
}

// places is the clusters of the options as a planner sees them, by used capacity.
func (s *searching) places() []planner.Place {
	usage := s.usage()
	pods := make(map[string]view.Usage)
	request := &s.search.Options[0].Request
	account := s.view.AccountVMs(request.Owner.Customer)
	counts := account.Clusters
	if p, known := planner.ByName(s.planner()); known && p.Kept {
		counts = s.view.KeptVMs(request.Owner.Customer)
	}
	s.across.Owned = request.Owner.Customer != ""
	podVMs, special := make(map[string]int), s.special(request.Labels)
	for i := range s.search.Options {
		one := &s.search.Options[i]
		pod := planner.PodOf(one.Cluster, one.Pod)
		pods[pod] = pods[pod].Add(usage[one.Cluster])
		podVMs[pod] += counts[one.Cluster]
	}
	used := func(u view.Usage) float64 { return u.Share(s.search.Capacity, s.search.CPUWeight) }
	places := make([]planner.Place, 0, len(s.search.Options))
	for i := range s.search.Options {
		one := &s.search.Options[i]
		pod := planner.PodOf(one.Cluster, one.Pod)
		places = append(places, planner.Place{
			Cluster: one.Cluster, Pod: pod, Used: used(usage[one.Cluster]), PodUsed: used(pods[pod]),
			VMs: counts[one.Cluster], PodVMs: podVMs[pod], Total: account.Total, Special: special[one.Cluster],
		})
	}
	planner.ByCapacity(places)
	return places
}

// special counts the labels of nodes that few VMs need, by cluster. A VM that has one of them needs such a node.
func (s *searching) special(labels []string) map[string]int {
	if len(s.search.Special) == 0 || slices.ContainsFunc(s.search.Special, func(label string) bool { return slices.Contains(labels, label) }) {
		return nil
	}
	found := make(map[string][]string)
	for _, node := range s.view.Nodes.All() {
		name := cmp.Or(node.Node.Cluster, model.DefaultCluster)
		for _, label := range node.Node.Labels {
			if slices.Contains(s.search.Special, label) && !slices.Contains(found[name], label) {
				found[name] = append(found[name], label)
			}
		}
	}
	counts := make(map[string]int, len(found))
	for name, labels := range found {
		counts[name] = len(labels)
	}
	return counts
}

// planner is the name of the planner that orders the clusters.
func (s *searching) planner() string { return cmp.Or(s.search.Planner, model.DefaultPlanner) }

// leaveOut marks the clusters that the VM would fill beyond their threshold, and moves them to the end.
func (s *searching) leaveOut() {
	for i := range s.tried {
		s.fill(&s.tried[i])
	}
	planner.PutLast(s.tried)
}

// fill finds out whether the VM would fill a cluster beyond a threshold that counts.
func (s *searching) fill(one *placement.Tried) bool {
	option := s.search.option(one.Cluster)
	if !s.binds(option) {
		return false
	}
	with := s.usage()[one.Cluster].Add(view.Usage{VCPUs: option.Request.VCPUs, Memory: option.Request.Memory})
	one.CPU, one.RAM, one.Threshold = with.CPUShare(), with.MemoryShare(), option.Threshold
	one.LeftOut = one.Crossing()
	return one.LeftOut != ""
}

// binds tells whether the threshold of a cluster counts for the VM, also where there is no other cluster. None counts for a VM that runs,
// that is restarted after a failure, or that can start nowhere else than where its disk is.
func (s *searching) binds(option *Option) bool {
	request := &option.Request
	return option.Threshold > 0 && !request.Purpose.Moves() && !request.Restart && request.Home == ""
}

// refused is the decision when no cluster has a node: the decision of the first cluster that was tried.
func (s *searching) refused() placement.Decision {
	if s.first != nil {
		decision := placement.Place(s.view, s.first.Request, s.first.Policy, s.seed)
		decision.Changes = append(decision.Changes, s.thresholds()...)
		return decision
	}
	option := s.search.option(s.tried[0].Cluster)
	return placement.Decision{
		At: s.view.At, Policy: option.Policy.Name, Seed: s.seed, Request: option.Request, Outcome: placement.Refused,
		FailedPhase: placement.PhaseThreshold, Changes: s.thresholds(),
	}
}

// maxTries is how many clusters that were left out are tried with another threshold.
const maxTries = 16

// thresholds is the capacity thresholds that would have let a cluster in that has a node: those that are exceeded least.
func (s *searching) thresholds() []placement.Change {
	var left []placement.Tried
	for _, one := range s.tried {
		if one.LeftOut != "" {
			left = append(left, one)
		}
	}
	over := func(t placement.Tried) float64 { return max(t.CPU, t.RAM) - t.Threshold }
	slices.SortFunc(left, func(a, b placement.Tried) int {
		return cmp.Or(cmp.Compare(over(a), over(b)), cmp.Compare(a.Cluster, b.Cluster))
	})
	for _, one := range left[:min(len(left), maxTries)] {
		option := s.search.option(one.Cluster)
		decision := placement.Place(s.view, option.Request, option.Policy, s.seed)
		if decision.Outcome == placement.Refused {
			continue
		}
		enough := math.Ceil(max(one.CPU, one.RAM)*100) / 100
		return []placement.Change{{
			Kind: placement.ChangeThreshold, Node: decision.Winner, Figure: enough,
			Text: fmt.Sprintf("with %s %s of cluster %s, %s would take it",
				model.SettingCapacityLimit, strconv.FormatFloat(enough, 'f', -1, 64), one.Cluster, decision.WinnerName),
		}}
	}
	return nil
}
