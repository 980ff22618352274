package placement

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/planner"
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
	// LastNode is the node ID that the VM ran on last, which is tried before all others. Empty: none is.
	LastNode string
	// Bound says in words why there is only one option: "vdc/a names cluster east", "its root disk is in cluster east". Then
	// nothing is ordered and no threshold counts. Empty: nothing binds the VM.
	Bound string
	// Special are labels of nodes that few VMs need. For a VM that needs none of them, clusters with fewer such labels come
	// first, before the planner's order.
	Special []string
}

// Option is one cluster of a search: the request for its nodes, and its policy.
type Option struct {
	Cluster   string // name
	Pod       string // name; empty: the cluster is in no pod and counts as a pod of its own
	Request   Request
	Policy    Policy
	Threshold float64 // used share of CPU or RAM, with the request, above which the cluster is left out; 0: none
}

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

// MaxTried is how many clusters a decision keeps. Each takes about 200 bytes of a replicated record.
const MaxTried = 128

// PlaceAcross decides in which cluster and on which node the VM goes. It tries the options in the planner's order until one
// has a node. The node that the VM ran on last is tried before all of them. A cluster without a node for the VM is not tried
// again.
//
// The same view, search and seed give the same decision. With one option it is the decision of Place.
func PlaceAcross(view *view.View, search Search, seed uint64) Decision {
	s := &searching{view: view, search: &search, seed: seed}
	s.across = Across{Planner: search.Planner, Bound: search.Bound}
	if decision, taken := s.onLast(); taken {
		return decision
	}
	switch len(search.Options) {
	case 0:
		return Decision{At: view.At, Seed: seed, Outcome: Refused, Reason: "no node fits: there is no cluster that the VM may go to"}
	case 1:
		decision := Place(view, search.Options[0].Request, search.Options[0].Policy, seed)
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
	across Across
	tried  []Tried
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
func (s *searching) onLast() (Decision, bool) {
	node := s.view.Node(s.search.LastNode)
	if node == nil {
		return Decision{}, false
	}
	option := s.search.option(cmp.Or(node.Node.Cluster, model.DefaultCluster))
	if option == nil {
		return Decision{}, false
	}
	request := option.Request
	request.Last = node.Node.ID
	decision := Place(s.view, request, option.Policy, s.seed)
	s.across.Last = cmp.Or(node.Node.Name, node.Node.ID)
	if decision.Winner == request.Last && decision.Outcome != Refused {
		decision.Across = &s.across
		return decision, true
	}
	s.across.Refused = refusalOf(&decision, request.Last)
	return Decision{}, false
}

// refusalOf says in words why a decision refuses a node.
func refusalOf(decision *Decision, node string) string {
	answer, err := WhyNot(*decision, node)
	if err != nil || len(answer.Why) == 0 {
		return decision.Reason
	}
	return answer.Why[0]
}

// inOrder tries the options in the planner's order.
func (s *searching) inOrder() Decision {
	places := s.places()
	s.across.Level, s.across.Weight, s.across.Capacity = s.search.Level, s.search.Weight, s.search.Capacity
	s.tried = s.across.order(places)
	s.leaveOut()
	for i := range s.tried {
		one := &s.tried[i]
		if one.LeftOut != "" {
			continue
		}
		option := s.search.option(one.Cluster)
		engine, err := NewEngine(option.Policy)
		if err == nil {
			err = option.Request.Validate()
		}
		if err != nil {
			one.Outcome, one.Reason = Refused, err.Error()
			continue
		}
		columns := s.view.Columns(cmp.Or(option.Request.Cluster, option.Cluster))
		choice := engine.Choose(columns, s.view.At, &option.Request, s.seed)
		if choice.Node < 0 {
			one.Outcome, one.Reason = Refused, reasonAlone(engine.refusalReason(choice))
			if s.first == nil {
				s.first = option
			}
			continue
		}
		one.Outcome = Placed
		decision := Decision{
			At: s.view.At, Policy: option.Policy.Name, Seed: s.seed, Request: option.Request, Outcome: Refused,
		}
		engine.record(&decision, choice, s.view)
		return s.ended(decision)
	}
	return s.ended(s.refused())
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
		pod := podOf(one.Cluster, one.Pod)
		pods[pod] = pods[pod].Add(usage[one.Cluster])
		podVMs[pod] += counts[one.Cluster]
	}
	places := make([]planner.Place, 0, len(s.search.Options))
	for i := range s.search.Options {
		one := &s.search.Options[i]
		pod := podOf(one.Cluster, one.Pod)
		places = append(places, planner.Place{
			Cluster: one.Cluster, Pod: pod, Used: usage[one.Cluster].Share(s.search.Capacity), PodUsed: pods[pod].Share(s.search.Capacity),
			VMs: counts[one.Cluster], PodVMs: podVMs[pod], Total: account.Total, Special: special[one.Cluster],
		})
	}
	planner.ByCapacity(places)
	return places
}

// special counts the labels of nodes that few VMs need, by cluster. A VM that has one of them needs such a node.
func (s *searching) special(labels []string) map[string]int {
	if slices.ContainsFunc(s.search.Special, func(label string) bool { return slices.Contains(labels, label) }) {
		return nil
	}
	found := make(map[string][]string)
	for _, node := range s.view.Nodes {
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

// podOf is the unique name of a cluster's pod; a cluster in no pod is a pod of its own.
func podOf(name, pod string) string {
	if pod == "" {
		return "cluster/" + name
	}
	return "pod/" + pod
}

// order sorts places, which come by used capacity, as the planner wants.
func (a *Across) order(places []planner.Place) []Tried {
	if p, known := planner.ByName(cmp.Or(a.Planner, model.DefaultPlanner)); known {
		p.Order(places, planner.Terms{Pods: a.Level == model.LevelPod, Weight: a.Weight, Owned: a.Owned})
	}
	slices.SortStableFunc(places, func(a, b planner.Place) int { return cmp.Compare(a.Special, b.Special) })
	tried := make([]Tried, 0, len(places))
	for _, one := range places {
		tried = append(tried, Tried{
			Cluster: one.Cluster, Pod: nameOfPod(one.Pod), Used: one.Used, AccountVMs: one.VMs, PodVMs: one.PodVMs, Total: one.Total,
			Weight: one.Weight, PodUsed: one.PodUsed, PodWeight: one.PodWeight,
			Special: one.Special,
		})
	}
	return tried
}

// leaveOut marks the clusters that the VM would fill beyond their threshold, and moves them to the end.
func (s *searching) leaveOut() {
	usage := s.usage()
	for i := range s.tried {
		one := &s.tried[i]
		option := s.search.option(one.Cluster)
		if option.Threshold <= 0 || s.search.Bound != "" || option.Request.Purpose.Moves() {
			continue
		}
		with := usage[one.Cluster].Add(view.Usage{VCPUs: option.Request.VCPUs, Memory: option.Request.Memory})
		one.CPU, one.RAM, one.Threshold = with.CPUShare(), with.MemoryShare(), option.Threshold
		one.LeftOut = one.crossing()
	}
	putLast(s.tried)
}

// putLast moves what is left out behind the others.
func putLast(tried []Tried) {
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

// refused is the decision when no cluster has a node: the decision of the first cluster that was tried.
func (s *searching) refused() Decision {
	if s.first != nil {
		decision := Place(s.view, s.first.Request, s.first.Policy, s.seed)
		decision.Changes = append(decision.Changes, s.thresholds()...)
		return decision
	}
	option := s.search.option(s.tried[0].Cluster)
	return Decision{
		At: s.view.At, Policy: option.Policy.Name, Seed: s.seed, Request: option.Request, Outcome: Refused,
		FailedPhase: PhaseThreshold, Changes: s.thresholds(),
	}
}

// ended completes the decision with what was found about the clusters.
func (s *searching) ended(decision Decision) Decision {
	decision.Across, decision.Tried = &s.across, s.tried
	if len(s.tried) > MaxTried {
		taken := slices.IndexFunc(s.tried, func(t Tried) bool { return t.Outcome == Placed })
		if taken >= MaxTried { // the chosen one has to be among those that are kept
			s.tried[MaxTried-1] = s.tried[taken]
		}
		decision.Tried, s.across.Omitted = slices.Clip(s.tried[:MaxTried]), len(s.tried)-MaxTried
	}
	decision.Reason = decision.acrossReason(decision.Reason)
	return decision
}
