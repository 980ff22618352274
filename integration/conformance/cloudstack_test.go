package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// csCandidate is a cluster of a case.
type csCandidate struct {
	ID   string
	Used float64 `json:"used_fraction"`
}

// UnmarshalJSON reads the used share of a cluster or a pod as it is, or from what is used and what there is. A name alone will do.
func (p *csCandidate) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) {
		return json.Unmarshal(raw, &p.ID)
	}
	var object struct {
		ID    string
		Share optional[float64] `json:"used_fraction"`
		Used  optional[float64]
		Total optional[float64]
	}
	if err := strictly(raw, &object); err != nil {
		return err
	}
	switch {
	case object.Share.given && (object.Used.given || object.Total.given), object.Used.given != object.Total.given,
		object.Total.given && object.Total.value <= 0:
		return fmt.Errorf("%s: want used_fraction, or used and a total above 0", raw)
	case object.Total.given:
		object.Share.value = object.Used.value / object.Total.value
	}
	p.ID, p.Used = object.ID, object.Share.value
	return nil
}

// runDisperse puts clusters in order for one customer, or for nobody.
func runDisperse(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Candidates []csCandidate     `json:"candidates_by_capacity"`
		Account    map[string]count  `json:"account_vms"`
		Total      count             `json:"total_account_vms"`
		Weight     optional[float64] `json:"dispersion_weight"`
		Owner      optional[string]
	}](c, rawGiven)
	expect := decode[struct {
		Order   []string
		Weights map[string]float64 `json:"total_weight"`
	}](c, rawExpect)
	s := newCSSite(c)
	owner := "account"
	if given.Owner.given {
		owner = given.Owner.or("")
	}
	s.plan("UserDispersingPlanner", owner)
	s.weight(given.Weight.or(1))
	for _, one := range given.Candidates {
		s.cluster(one.ID, "", one.Used)
	}
	s.has("account", given.Account, int(given.Total))
	decision := s.decide()
	c.same("the order", fmt.Sprint(ordered(decision)), fmt.Sprint(expect.Order))
	weights := map[string]float64{}
	for _, one := range decision.Tried {
		weights[one.Cluster] = one.Weight
	}
	c.sameScores("the weight", weights, expect.Weights)
}

// runCountStates counts an account's VMs: as we do, and as the seed does, who looks away from those that are starting.
func runCountStates(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Account string
		VMs     []struct{ ID, Account, State, Cluster string }
	}](c, rawGiven)
	expect := decode[struct {
		Seed map[string]int `json:"counts_seed"`
		Ours map[string]int `json:"counts_recommended"`
	}](c, rawExpect)
	for starting, want := range map[bool]map[string]int{true: expect.Ours, false: expect.Seed} {
		s := newCSSite(c)
		for _, one := range given.VMs {
			host := "host-of-" + one.Cluster
			if _, there := s.facts[host]; !there {
				s.cluster(one.Cluster, "", 0)
			}
			switch one.State {
			case "Running":
				s.runs(host, one.Account, model.VMSpec{})
			case "Starting":
				if starting {
					s.hold(host, one.Account, 1)
				}
			case "Stopped":
				s.VMs = append(s.VMs, model.VM{ID: one.ID, Name: one.ID, LastNode: host, Owner: model.Owner{Customer: one.Account}})
			default:
				c.Fatalf("what is a VM that is %q?", one.State)
			}
		}
		c.same(fmt.Sprintf("counts, starting ones %t", starting), fmt.Sprint(s.view().AccountVMs(given.Account).Clusters), fmt.Sprint(want))
	}
}

// runPods puts pods in order, and then the clusters in each that have capacity.
func runPods(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Pods       []csCandidate       `json:"pods_by_capacity"`
		PodVMs     map[string]count    `json:"pod_account_vms"`
		Clusters   map[string][]string `json:"clusters_with_capacity"`
		ClusterVMs map[string]count    `json:"cluster_account_vms"`
		Weight     float64             `json:"dispersion_weight"`
	}](c, rawGiven)
	expect := decode[struct {
		Pods     []string `json:"pod_order"`
		Clusters []string `json:"cluster_order"`
	}](c, rawExpect)
	s := newCSSite(c)
	s.plan("UserDispersingPlanner", "account")
	s.weight(given.Weight)
	s.set(model.SettingHeuristicsTo, model.LevelPod)
	for i, pod := range given.Pods {
		for _, name := range given.Clusters[pod.ID] {
			s.cluster(name, pod.ID, cmp.Or(pod.Used, 0.1*float64(i+1)))
		}
	}
	total := 0
	for name, vms := range given.ClusterVMs {
		total += int(vms)
		if _, there := s.facts["host-of-"+name]; !there { // without capacity: the pod of it is the least one's
			s.cluster(name, given.Pods[len(given.Pods)-1].ID, 0.5)
			s.full("host-of-" + name)
		}
	}
	s.has("account", given.ClusterVMs, total)
	decision := s.decide()
	c.same("clusters", fmt.Sprint(ordered(decision)), fmt.Sprint(expect.Clusters))
	var pods []string
	for _, one := range decision.Tried {
		if vms := int(given.PodVMs[one.Pod]); one.PodVMs != vms {
			c.Errorf("pod %s has %d VMs of the account, want %d", one.Pod, one.PodVMs, vms)
		}
		pods = append(pods, one.Pod)
	}
	c.same("pods", fmt.Sprint(slices.Compact(pods)), fmt.Sprint(expect.Pods))
}

// runCapacityOrder puts clusters of several hosts in order by what is used of them.
func runCapacityOrder(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters []struct {
			ID         string
			Overcommit float64
			Hosts      []struct{ Total, Used, Reserved int }
		}
	}](c, rawGiven)
	expect := decode[struct {
		Used  map[string]float64 `json:"used_fraction"`
		Order []string
	}](c, rawExpect)
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	for _, one := range given.Clusters {
		s.bare(one.ID, "")
		for i, host := range one.Hosts {
			name := fmt.Sprint(one.ID, "-", i)
			s.node(name, one.ID, host.Total)
			s.at(name).Settings.CPURatio = &one.Overcommit
			s.use(name, host.Used)
			s.hold(name, "", host.Reserved)
		}
	}
	s.expectUsed(s.decide(), expect.Order, expect.Used)
}

func (s *csSite) expectUsed(decision placement.Decision, order []string, used map[string]float64) {
	s.Helper()
	s.same("the order", fmt.Sprint(ordered(decision)), fmt.Sprint(order))
	found := map[string]float64{}
	for _, one := range decision.Tried {
		found[one.Cluster] = one.Used
	}
	s.sameScores("the used share", found, used)
}

// runCombinedCapacity orders by half of the CPU and half of the memory. CloudStack does so with hosts too; here it is what
// orders clusters, so each host is one.
func runCombinedCapacity(c *checker, rawGiven, rawExpect json.RawMessage) {
	type amount struct{ Total, Used, Reserved int64 }
	given := decode[struct {
		Hosts []struct {
			ID       string
			CPU, Mem amount
		}
		Weight optional[float64] `json:"cpu_weight"`
	}](c, rawGiven)
	expect := decode[struct {
		Free      map[string]float64
		Order     []string
		Tolerance float64
	}](c, rawExpect)
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	s.set(model.SettingCapacityType, model.CapacityCombined)
	if given.Weight.given { // otherwise it is as by default
		s.set(model.SettingCPUWeight, strconv.FormatFloat(given.Weight.value, 'f', -1, 64))
	}
	for _, one := range given.Hosts {
		s.bare(one.ID, "")
		s.node(one.ID, one.ID, int(one.CPU.Total))
		s.facts[one.ID] = idle(units.Bytes(one.Mem.Total), int(one.CPU.Total))
		s.runs(one.ID, "", model.VMSpec{VCPUs: int(one.CPU.Used), Memory: units.Bytes(one.Mem.Used)})
		s.hold(one.ID, "", int(one.CPU.Reserved))
		s.reservations[len(s.reservations)-1].Memory = units.Bytes(one.Mem.Reserved)
	}
	used := map[string]float64{}
	for name, free := range expect.Free {
		used[name] = 1 - free
	}
	s.tolerance = expect.Tolerance
	s.expectUsed(s.decide(), expect.Order, used)
}

// runImplicitTags has clusters whose hosts have labels that few VMs need.
func runImplicitTags(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters []string       `json:"clusters_by_capacity"`
		Tags     map[string]int `json:"distinct_implicit_tags"`
	}](c, rawGiven)
	expect := decode[struct{ Order []string }](c, rawExpect)
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	s.byCapacity(given.Clusters)
	special := ""
	for name, tags := range given.Tags {
		for i := range tags {
			label := fmt.Sprint("special-", i)
			s.at("host-of-" + name).Labels = append(s.at("host-of-"+name).Labels, label)
			special += label + ","
		}
	}
	s.set(model.SettingSpecialLabels, special)
	c.same("the order", fmt.Sprint(ordered(s.decide())), fmt.Sprint(expect.Order))
	s.vm.Labels = []string{"special-0"}
	c.same("the order for a VM that needs them", fmt.Sprint(ordered(s.decide())), fmt.Sprint(given.Clusters))
}

// byCapacity adds clusters of which more and more is used.
func (s *csSite) byCapacity(names []string) {
	for i, name := range names {
		s.cluster(name, "", 0.05*float64(i+1))
	}
}

// runHostTag has an offer that only some hosts may serve. Here that is a key that the offer sets and the hosts have.
func runHostTag(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters []string `json:"clusters_by_capacity"`
		Tagged   []string `json:"clusters_with_tag"`
	}](c, rawGiven)
	expect := decode[struct {
		Clusters []string
		Ordered  bool `json:"order_significant"`
	}](c, rawExpect)
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	s.byCapacity(given.Clusters)
	for _, name := range given.Clusters {
		s.record("cluster-" + name).NodeKeys = []model.NodeKey{{Name: "TAG"}}
		if slices.Contains(given.Tagged, name) {
			s.at("host-of-" + name).Keys = map[string]float64{"TAG": 1}
		}
	}
	offer := s.record("offer")
	offer.Keys = []model.Key{{Class: model.SystemKey, Name: "TAG", Value: 0, Weight: -1000}}
	var found []string
	for decision := s.decide(); decision.Outcome == placement.Placed; decision = s.decide() {
		found = append(found, decision.Request.Cluster)
		s.full("host-of-" + decision.Request.Cluster) // no more there
	}
	if expect.Ordered {
		c.same("the clusters", fmt.Sprint(found), fmt.Sprint(expect.Clusters))
	} else {
		c.sameSet("the clusters", found, expect.Clusters)
	}
}

// runClusterThreshold has a cluster that the VM would fill too far. There the check can be switched off, and then holds for new
// VMs alone; here it holds always, and a VM that ran there before may come back to its host.
func runClusterThreshold(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Clusters  []string `json:"clusters_by_capacity"`
		Crossing  []string
		Enabled   bool `json:"threshold_check_enabled"`
		Operation string
	}](c, rawGiven)
	expect := decode[map[string]bool](c, rawExpect)
	s := newCSSite(c)
	s.plan("FirstFitPlanner", "")
	s.byCapacity(given.Clusters)
	for _, name := range given.Crossing {
		s.use("host-of-"+name, csWhole*8/10)
	}
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		cluster := name[len("contains_"):]
		if given.Operation == "start" && !given.Enabled {
			s.vm.LastNode = "host-of-" + cluster
		}
		decision := s.decide()
		may := decision.Request.Cluster == cluster
		for _, one := range decision.Tried {
			may = may || one.Cluster == cluster && one.LeftOut == ""
		}
		c.same(name, may, expect[name])
	}
}

// runThresholdBinds has clusters of which so much is used, in a zone or in a site without topology, and thresholds that are set or not.
func runThresholdBinds(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Zone     bool                         `json:"in_a_zone"`
		OfZone   optional[float64]            `json:"zone_threshold"`
		Clusters map[string]optional[float64] // by name: the threshold that it sets, or null
		Used     float64
	}](c, rawGiven)
	expect := decode[struct {
		Refused bool
	}](c, rawExpect)
	s := newCSSite(c)
	if given.Zone {
		s.plan("FirstFitPlanner", "")
	} else {
		s.Resources, s.Nodes, s.vm.Within, s.vm.Offer = nil, nil, "", ""
	}
	if given.OfZone.given {
		s.set(model.SettingCapacityLimit, strconv.FormatFloat(given.OfZone.value, 'g', -1, 64))
	}
	for _, name := range slices.Sorted(maps.Keys(given.Clusters)) {
		if given.Zone {
			s.bare(name, "")
		} else {
			s.Resources = append(s.Resources, model.Resource{
				ID: name, Kind: model.KindCluster, Name: name, Settings: map[string]string{}, Keys: model.SpecialKeyDefaults(),
			})
		}
		s.node("host-of-"+name, name, csWhole)
		s.use("host-of-"+name, int(given.Used*csWhole+0.5))
		if set := given.Clusters[name]; !set.null {
			s.Resources[len(s.Resources)-1].Settings[model.SettingCapacityLimit] = strconv.FormatFloat(set.value, 'g', -1, 64)
		}
	}
	decision := s.decide()
	c.same("whether a threshold refuses it", decision.Outcome == placement.Refused && decision.FailedPhase == placement.PhaseThreshold,
		expect.Refused)
	c.same("whether it is placed", decision.Outcome == placement.Placed, !expect.Refused)
}
