package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/view"
	"berth/shared/units"
)

// csPlanners are ours of CloudStack's planners.
var csPlanners = map[string]string{
	"FirstFitPlanner": "first-fit", "UserDispersingPlanner": "user-dispersing", "UserConcentratedPodPlanner": "user-concentrated",
}

// csWhole is how many vCPUs a cluster of a case has in all: used shares of a case are exact to the ninth digit.
const csWhole = 1_000_000_000

// csSite is a zone in the records that the product keeps, and one VM that is placed somewhere in it. Names are IDs.
type csSite struct {
	*checker
	estate.State
	facts        map[string]model.NodeFacts
	reservations []model.Reservation
	vm           model.VM
	zone         int // index of its record
}

func newCSSite(c *checker) *csSite {
	c.Helper()
	s := &csSite{checker: c, facts: map[string]model.NodeFacts{}}
	s.Resources = []model.Resource{
		{ID: "zone", Kind: model.KindZone, Name: "zone", Settings: map[string]string{}},
		{ID: "elsewhere", Kind: model.KindCluster, Name: "elsewhere"},
		{ID: "offer", Kind: model.KindOffer, Name: "offer", Settings: map[string]string{"for": "vm"}},
	}
	s.vm = model.VM{
		ID: "new", Name: "new", Spec: model.VMSpec{Memory: units.MiB, VCPUs: 1}, Desired: model.Stopped, Within: "zone", Offer: "offer",
	}
	s.node("elsewhere-host", "elsewhere", csWhole)
	return s
}

// set sets something of the zone.
func (s *csSite) set(name, value string) { s.Resources[s.zone].Settings[name] = value }

func (s *csSite) weight(weight float64) {
	s.set(model.SettingDispersionWeight, strconv.FormatFloat(weight, 'g', -1, 64))
}

// record finds a resource by ID.
func (s *csSite) record(id string) *model.Resource {
	s.Helper()
	at := slices.IndexFunc(s.Resources, func(r model.Resource) bool { return r.ID == id })
	if at < 0 {
		s.Fatalf("there is no %q", id)
	}
	return &s.Resources[at]
}

// plan has the VM's offer name a planner, and the VM belong to a customer; nobody's, if none is named.
func (s *csSite) plan(planner, customer string) {
	s.record("offer").Settings[model.SettingPlanner] = csPlanners[planner]
	if customer == "" {
		s.vm.VDC, s.vm.Within = "", "zone"
		return
	}
	for _, r := range []model.Resource{
		{ID: customer, Kind: model.KindCustomer, Name: customer},
		{ID: "vdc-" + customer, Kind: model.KindVDC, Name: "vdc-" + customer, Links: map[string]string{"customer": customer, "zone": "zone"}},
	} {
		if !slices.ContainsFunc(s.Resources, func(other model.Resource) bool { return other.ID == r.ID }) {
			s.Resources = append(s.Resources, r)
		}
	}
	s.vm.VDC, s.vm.Within = "vdc-"+customer, ""
}

// pod adds one.
func (s *csSite) pod(name string) {
	if !slices.ContainsFunc(s.Resources, func(r model.Resource) bool { return r.ID == "pod-"+name }) {
		s.Resources = append(s.Resources, model.Resource{
			ID: "pod-" + name, Kind: model.KindPod, Name: name, Links: map[string]string{"zone": "zone"},
		})
	}
}

// bare adds a cluster without a node; where a case names no pod, it has one of its own.
func (s *csSite) bare(name, pod string) {
	if pod == "" {
		pod = "of-" + name
	}
	s.pod(pod)
	s.Resources = append(s.Resources, model.Resource{
		ID: "cluster-" + name, Kind: model.KindCluster, Name: name, Links: map[string]string{"pod": "pod-" + pod},
		Settings: map[string]string{}, Keys: model.SpecialKeyDefaults(),
	})
}

// cluster adds one with one node, of whose CPUs so much is used.
func (s *csSite) cluster(name, pod string, used float64) {
	s.bare(name, pod)
	s.node("host-of-"+name, name, csWhole)
	s.use("host-of-"+name, int(used*csWhole+0.5))
}

// node adds one that is idle, with so many CPUs.
func (s *csSite) node(name, in string, cpus int) {
	one, none := 1.0, units.Bytes(0)
	s.Nodes = append(s.Nodes, model.Node{
		ID: name, Name: name, Cluster: in, Settings: model.NodeSettings{RAMRatio: &one, CPURatio: &one, Overhead: &none},
	})
	s.facts[name] = idle(whole, cpus)
}

// at finds a node.
func (s *csSite) at(name string) *model.Node {
	s.Helper()
	at := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.ID == name })
	if at < 0 {
		s.Fatalf("there is no node %q", name)
	}
	return &s.Nodes[at]
}

// use has a VM of nobody use vCPUs of a node.
func (s *csSite) use(node string, vcpus int) {
	s.runs(node, "", model.VMSpec{VCPUs: vcpus})
}

// runs adds a VM that has run on a node for long.
func (s *csSite) runs(node, customer string, spec model.VMSpec) {
	id := fmt.Sprintf("vm-%d", len(s.VMs))
	s.VMs = append(s.VMs, model.VM{
		ID: id, Name: id, Spec: spec, Desired: model.Running, Holder: node, StartedAt: noon.Add(-time.Hour),
		Owner: model.Owner{Customer: customer},
	})
}

// has gives a customer VMs that take nothing, by cluster, and the others of all that it has elsewhere.
func (s *csSite) has(customer string, vms map[string]count, total int) {
	for _, name := range slices.Sorted(maps.Keys(vms)) {
		at := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Cluster == name })
		if at < 0 {
			s.cluster(name, "", 0) // without capacity, so that it is no candidate
			s.full("host-of-" + name)
			at = len(s.Nodes) - 1
		}
		for range int(vms[name]) {
			s.runs(s.Nodes[at].ID, customer, model.VMSpec{})
			total--
		}
	}
	for range total {
		s.runs("elsewhere-host", customer, model.VMSpec{})
	}
}

// full leaves a node no memory that is really free; what is promised of it, on which thresholds look, stays as it is.
func (s *csSite) full(node string) {
	facts := s.facts[node]
	facts.Available = new(units.Bytes(0))
	s.facts[node] = facts
}

// hold has a VM be on its way to a node.
func (s *csSite) hold(node, customer string, vcpus int) {
	id := fmt.Sprintf("vm-%d", len(s.VMs))
	s.VMs = append(s.VMs, model.VM{ID: id, Name: id, Desired: model.Running, Owner: model.Owner{Customer: customer}})
	s.reservations = append(s.reservations, model.Reservation{Node: node, VM: id, Name: id, VCPUs: vcpus, Operation: "op-" + id})
}

func (s *csSite) view() *view.View {
	records := view.Records{Nodes: s.Nodes, VMs: append(slices.Clone(s.VMs), s.vm), Reservations: s.reservations}
	for _, r := range s.Resources {
		if r.Kind == model.KindCluster {
			records.Clusters = append(records.Clusters, r)
		}
	}
	return view.New(noon, 1, records, s.facts)
}

// search is what the product asks for the VM.
func (s *csSite) search() across.Search {
	s.Helper()
	state := s.State
	state.VMs = append(slices.Clone(s.VMs), s.vm)
	search, _, err := estate.SearchOf(estate.Indexed(&state), s.view(), s.vm, placement.ForStart)
	s.must(err)
	return search
}

// decide places the VM. What a decision keeps has to give the same order again.
func (s *csSite) decide() placement.Decision {
	s.Helper()
	return s.decideAs(s.search())
}

func (s *csSite) decideAs(search across.Search) placement.Decision {
	s.Helper()
	decision := across.Place(s.view(), search, 1)
	if _, err := placement.Replay(decision); err != nil {
		s.Errorf("made again: %v", err)
	}
	return decision
}

// ordered are the clusters of a decision in order, but for those without capacity.
func ordered(decision placement.Decision) []string {
	var names []string
	for _, one := range decision.Tried {
		if one.Outcome != placement.Refused && one.LeftOut == "" {
			names = append(names, one.Cluster)
		}
	}
	return names
}

// started places the VM and lets it run there; it gives back the cluster.
func (s *csSite) started() string {
	s.Helper()
	decision := s.decide()
	if decision.Outcome != placement.Placed {
		s.Fatalf("not placed: %s", decision.Reason)
	}
	one := s.vm
	one.ID = fmt.Sprintf("vm-%d", len(s.VMs))
	one.Name, one.Holder, one.Owner, one.StartedAt = one.ID, decision.Winner, decision.Request.Owner, noon.Add(-time.Hour)
	s.VMs = append(s.VMs, one)
	return decision.Request.Cluster
}
