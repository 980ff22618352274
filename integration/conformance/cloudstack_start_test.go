package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
)

// runHostOrder puts the hosts of one cluster in order.
func runHostOrder(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Hosts   []string
		Account map[string]count `json:"account_vms"`
		Full    []string         `json:"without_capacity"`
		Avoid   []string
		Most    optional[count] `json:"return_up_to"`
	}](c, rawGiven)
	expect := decode[struct{ Hosts []string }](c, rawExpect)
	s := newCSSite(c)
	s.plan("UserDispersingPlanner", "account")
	s.bare("C", "")
	for _, host := range given.Hosts {
		s.node(host, "C", csWhole)
		for range int(given.Account[host]) {
			s.runs(host, "account", model.VMSpec{})
		}
	}
	for _, host := range given.Full {
		s.full(host)
	}
	search := s.search()
	search.Options[0].Request.Excluded = given.Avoid
	hosts := []string{}
	for _, node := range placement.Explain(s.decideAs(search)).Nodes {
		if node.Admitted && len(hosts) < int(given.Most.or(count(len(given.Hosts)))) {
			hosts = append(hosts, node.Name)
		}
	}
	c.same("the hosts", fmt.Sprint(hosts), fmt.Sprint(expect.Hosts))
}

// runFailover goes on to the next cluster when no host of one has room.
func runFailover(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Order []string `json:"cluster_order"`
		Hosts map[string][]string
		Full  []string `json:"without_capacity"`
	}](c, rawGiven)
	expect := decode[struct {
		Placed string   `json:"placed_on"`
		Tried  []string `json:"clusters_tried"`
	}](c, rawExpect)
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	for i, name := range given.Order {
		s.bare(name, "")
		for _, host := range given.Hosts[name] {
			s.node(host, name, csWhole)
			s.use(host, csWhole*(i+1)/10)
		}
	}
	for _, host := range given.Full {
		s.full(host)
	}
	decision := s.decide()
	c.same("the host", decision.WinnerName, expect.Placed)
	var tried []string
	for _, one := range decision.Tried {
		if one.Outcome != "" {
			tried = append(tried, one.Cluster)
		}
	}
	c.same("the clusters that were tried", fmt.Sprint(tried), fmt.Sprint(expect.Tried))
}

// bypassCase is one way in which the order does not count.
type bypassCase struct {
	LastHost string         `json:"last_host"`
	Fits     optional[bool] `json:"last_host_fits"`
	Root     string         `json:"root_volume_ready_in_cluster"`
	Cluster  string         `json:"cluster_given"`
	Pod      string         `json:"pod_given"`
}

// runBypass says in the words of the case what becomes of a start. Its zone has four clusters in two pods; the order of a new
// VM is C4, C2, C3, C1.
func runBypass(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct{ Cases []bypassCase }](c, rawGiven)
	expect := decode[struct{ Effects []string }](c, rawExpect)
	for i, one := range given.Cases {
		if i >= len(expect.Effects) {
			c.Fatal("there are more cases than effects")
		}
		c.same(fmt.Sprintf("the effect of case %d", i+1), bypass(c, one), expect.Effects[i])
	}
	c.same("cases", len(given.Cases), len(expect.Effects))
}

func bypass(c *checker, one bypassCase) string {
	s := newCSSite(c)
	s.plan("UserDispersingPlanner", "account")
	for name, pod := range map[string]string{"C1": "P1", "C2": "P2", "C3": "P1", "C4": "P2"} {
		s.cluster(name, pod, 0.5)
	}
	s.node("H7", "C1", csWhole)
	s.has("account", map[string]count{"C1": 3, "C2": 1, "C3": 2}, 6)
	full := ordered(s.decide())
	s.vm.LastNode = one.LastHost
	if one.LastHost != "" && !one.Fits.or(true) {
		s.full(one.LastHost)
	}
	if one.Root != "" {
		s.Resources = append(s.Resources,
			model.Resource{ID: "pool", Kind: model.KindPool, Name: "pool", Links: map[string]string{"cluster": "cluster-" + one.Root}},
			model.Resource{ID: "root", Kind: model.KindDisk, Name: "root", Volume: &model.Volume{Pool: "pool", Name: "root"}})
		s.vm.Disks = []string{"root"}
	}
	if one.Cluster != "" {
		s.vm.Within = "cluster-" + one.Cluster
	}
	if one.Pod != "" {
		s.vm.Within = "pod-" + one.Pod
	}
	search := s.search()
	if one.Root != "" && len(search.Options) == 1 { // whether the pool is there is another matter
		search.Options[0].Request.Disks = nil
	}
	decision := s.decideAs(search)
	found := ordered(decision)
	switch {
	case one.LastHost != "" && decision.WinnerName == one.LastHost && len(decision.Tried) == 0:
		return "start on " + one.LastHost + ", no ordering"
	case one.LastHost != "" && slices.Equal(found, full):
		return "full ordering as for a new VM"
	case len(search.Options) == 1 && len(decision.Tried) == 0:
		return "only " + decision.Request.Cluster + " is searched"
	}
	for _, tried := range decision.Tried {
		if tried.Pod != one.Pod {
			return fmt.Sprintf("clusters %v", found)
		}
	}
	if within := slices.DeleteFunc(
		slices.Clone(full), func(name string) bool { return !slices.Contains(found, name) },
	); slices.Equal(within, found) {
		return "only clusters of " + one.Pod + ", still ordered by the heuristic"
	}
	return fmt.Sprintf("clusters %v", found)
}

// runSequence starts VMs of one account one after the other.
func runSequence(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters map[string]float64
		Starts   count
		PerVM    float64 `json:"used_fraction_per_vm"`
		Weight   float64 `json:"dispersion_weight"`
	}](c, rawGiven)
	expect := decode[struct {
		Sequence []string
		Account  map[string]int `json:"account_vms"`
	}](c, rawExpect)
	s := newCSSite(c)
	s.plan("UserDispersingPlanner", "account")
	s.weight(given.Weight)
	s.vm.Spec.VCPUs = int(given.PerVM*csWhole + 0.5)
	for name, used := range given.Clusters {
		s.cluster(name, "", used)
	}
	var sequence []string
	for range int(given.Starts) {
		sequence = append(sequence, s.started())
	}
	c.same("the clusters", fmt.Sprint(sequence), fmt.Sprint(expect.Sequence))
	counted := s.view().AccountVMs("account").Clusters
	for _, name := range slices.Sorted(maps.Keys(expect.Account)) {
		c.same("VMs in "+name, counted[name], expect.Account[name])
	}
}

// runSequenceAccounts starts VMs of several accounts.
func runSequenceAccounts(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters []string
		Used     map[string]float64 `json:"used_fraction"`
		Starts   []string
		Weight   float64 `json:"dispersion_weight"`
	}](c, rawGiven)
	expect := decode[struct{ Placements []string }](c, rawExpect)
	s := newCSSite(c)
	s.weight(given.Weight)
	for _, name := range given.Clusters {
		s.cluster(name, "", given.Used[name])
	}
	var placed []string
	for _, account := range given.Starts {
		s.plan("UserDispersingPlanner", account)
		placed = append(placed, s.started())
	}
	c.same("the clusters", fmt.Sprint(placed), fmt.Sprint(expect.Placements))
}

// runUserConcentrated has an account whose VMs are stopped.
func runUserConcentrated(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters []string          `json:"clusters_by_capacity"`
		Pods     map[string]string `json:"pod_of"`
		Most     []string          `json:"pods_by_account_vms_desc"`
	}](c, rawGiven)
	expect := decode[struct{ Order []string }](c, rawExpect)
	s := newCSSite(c)
	s.plan("UserConcentratedPodPlanner", "account")
	for i, name := range given.Clusters {
		s.cluster(name, given.Pods[name], 0.05*float64(i+1))
	}
	for i, pod := range given.Most {
		for _, name := range slices.Backward(given.Clusters) {
			if given.Pods[name] != pod {
				continue
			}
			for range len(given.Most) - i {
				s.VMs = append(s.VMs, model.VM{
					ID: fmt.Sprint("stopped-", len(s.VMs)), LastNode: "host-of-" + name, Owner: model.Owner{Customer: "account"},
				})
			}
			break
		}
	}
	c.same("the order", fmt.Sprint(ordered(s.decide())), fmt.Sprint(expect.Order))
}

// runPlannerChoice has planners of the offer and of the zone.
func runPlannerChoice(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Cases []struct {
			Offering optional[string]
			Global   string `json:"global_"`
		}
	}](c, rawGiven)
	expect := decode[struct{ Planner []string }](c, rawExpect)
	var chosen []string
	for _, one := range given.Cases {
		s := newCSSite(c)
		s.plan("FirstFitPlanner", "")
		s.cluster("C1", "", 0.1)
		s.cluster("C2", "", 0.2)
		delete(s.record("offer").Settings, model.SettingPlanner)
		if planner := one.Offering.or(""); planner != "" {
			s.record("offer").Settings[model.SettingPlanner] = csPlanners[planner]
		}
		s.set(model.SettingPlanner, csPlanners[one.Global])
		search := s.search()
		if own := search.Options[0].Request.Planner; own != search.Planner {
			c.Errorf("clusters by %q, nodes by %q", search.Planner, own)
		}
		chosen = append(chosen, theirs(search.Planner))
	}
	c.same("the planners", fmt.Sprint(chosen), fmt.Sprint(expect.Planner))
}

// theirs is CloudStack's name of a planner.
func theirs(planner string) string {
	for name, ours := range csPlanners {
		if ours == planner {
			return name
		}
	}
	return planner
}

func csPlannerDefault() string { return theirs(model.DefaultPlanner) }

// csAllocation is how one of several hosts is chosen that are as good as each other.
func csAllocation(c *checker) any {
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	s.bare("C", "")
	for i := range 4 {
		s.node(fmt.Sprint("host-", i), "C", csWhole)
	}
	found := map[string]bool{}
	for seed := range uint64(40) {
		found[across.Place(s.view(), s.search(), seed).WinnerName] = true
	}
	if len(found) < 4 {
		return fmt.Sprint(found)
	}
	return "random"
}
