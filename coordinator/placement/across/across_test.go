package across

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/units"
)

// site is a few clusters in a few pods, each with some nodes, and a customer's VMs.
type site struct {
	records view.Records
	facts   map[string]model.NodeFacts
	search  Search
}

func newSite() *site {
	return &site{facts: map[string]model.NodeFacts{}, search: Search{
		Planner: "user-dispersing", Level: model.LevelCluster, Weight: 1, Capacity: model.CapacityCPU,
	}}
}

// cluster adds one with nodes of 16 CPUs and 64 GiB, of which so many vCPUs of 128 are used on each.
func (s *site) cluster(name, pod string, nodes, vcpus int) {
	record := model.DefaultClusterRecord()
	record.ID, record.Name = "id-"+name, name
	s.records.Clusters = append(s.records.Clusters, record)
	for i := range nodes {
		id := fmt.Sprint(name, "-", i)
		s.records.Nodes = append(s.records.Nodes, model.Node{ID: id, Name: id, Cluster: name})
		s.facts[id] = model.NodeFacts{
			Liveness: model.Up, Inventory: true, InventoryAt: noon, DomainsKnown: true, Memory: 64 * units.GiB, CPUs: 16,
			Telemetry: true, TelemetryAt: noon, Available: ptr(60 * units.GiB), Load1: ptr(1.0),
		}
		s.vm(id, "", vcpus)
	}
	s.search.Options = append(s.search.Options, Option{
		Cluster: name, Pod: pod, Policy: policies.Default(), Threshold: 0.85,
		Request: placement.Request{
			Purpose: placement.ForStart, VM: "new", VMName: "new", Memory: units.GiB, VCPUs: 1, Cluster: name, Planner: s.search.Planner,
			Owner: model.Owner{Customer: "acme"}, SystemKeys: specials(),
		},
	})
}

func (s *site) vm(node, customer string, vcpus int) {
	id := fmt.Sprint("vm-", len(s.records.VMs))
	s.records.VMs = append(s.records.VMs, model.VM{
		ID: id, Name: id, Spec: model.VMSpec{Memory: units.MiB, VCPUs: vcpus}, Desired: model.Running, Holder: node,
		StartedAt: noon.Add(-time.Hour), Owner: model.Owner{Customer: customer},
	})
}

// full leaves the nodes of a cluster no memory.
func (s *site) full(name string) {
	for id, facts := range s.facts {
		if strings.HasPrefix(id, name+"-") {
			facts.Available = ptr(units.MiB)
			s.facts[id] = facts
		}
	}
}

func (s *site) decide(t interface {
	Fatal(...any)
	Helper()
},
) placement.Decision {
	t.Helper()
	d := through(t, Place(view.New(noon, 1, s.records, s.facts), s.search, 1))
	again, err := placement.Replay(d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Fatal("(-was +is):\n" + diff)
	}
	return d
}

func triedOf(d placement.Decision) string {
	var names []string
	for _, one := range d.Tried {
		name := one.Cluster
		switch {
		case one.LeftOut != "":
			name = "-" + name
		case one.Outcome == placement.Refused:
			name = "x" + name
		case one.Outcome == placement.Placed:
			name = "*" + name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// three are clusters a and b of pod p, and c of pod q. The customer has two VMs in a, none in b, one in c.
func three() *site {
	s := newSite()
	s.cluster("a", "p", 2, 10)
	s.cluster("b", "p", 2, 60)
	s.cluster("c", "q", 2, 20)
	for _, node := range []string{"a-0", "a-1", "c-0"} {
		s.vm(node, "acme", 0)
	}
	return s
}

func TestClustersComeInThePlannersOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*site)
		want   string
		why    string
	}{
		{"by the customer's VMs", func(*site) {}, "*b c a", "cluster b is 1st of 3 clusters by user-dispersing"},
		{"by pods first", func(s *site) { s.search.Level = model.LevelPod }, "*c b a", "cluster c is 1st of 3 clusters"},
		{"by capacity", func(s *site) { s.search.Planner = "first-fit" }, "*a c b", "cluster a is 1st of 3 clusters by first-fit"},
		{"by capacity, of nobody", func(s *site) {
			for i := range s.search.Options {
				s.search.Options[i].Request.Owner = model.Owner{}
			}
		}, "*a c b", ""},
		{"near each other", func(s *site) { s.search.Planner = "user-concentrated" }, "*a b c", ""},
		{"the first is full", func(s *site) { s.full("b") }, "xb *c a", "cluster c is 2nd of 3 clusters"},
		{"the first crosses its threshold", func(s *site) { s.search.Options[1].Threshold = 0.4 }, "*c a -b", ""},
		{"a move looks at no threshold", func(s *site) {
			s.search.Options[1].Threshold = 0.4
			for i := range s.search.Options {
				s.search.Options[i].Request.Purpose = placement.ForDrain
			}
		}, "*b c a", ""},
		{"special nodes last", func(s *site) {
			s.search.Special = []string{"gpu"}
			s.records.Nodes[2].Labels = []string{"gpu"}
		}, "*c a b", ""},
		{"all are full", func(s *site) { s.full("a"); s.full("b"); s.full("c") }, "xb xc xa", "no node fits: of 3 clusters, b: of 2 nodes"},
		{"all cross their thresholds", func(s *site) {
			for i := range s.search.Options {
				s.search.Options[i].Threshold = 0.01
			}
		}, "-b -c -a", "b: with the VM, 47.3 % of its CPU would be used, more than its threshold of 1 %"},
		{"a policy is not valid", func(s *site) { s.search.Options[1].Policy.Selector = "dice" }, "xb *c a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three()
			c.change(s)
			d := s.decide(t)
			if got := triedOf(d); got != c.want {
				t.Errorf("tried %s, want %s", got, c.want)
			}
			if !strings.Contains(d.Reason, c.why) {
				t.Errorf("%q is not in %q", c.why, d.Reason)
			}
			if (d.Outcome == placement.Placed) != strings.Contains(c.want, "*") {
				t.Errorf("outcome %s", d.Outcome)
			}
		})
	}
}

func TestARefusalNamesTheThresholdThatWouldDo(t *testing.T) {
	s := three()
	for i := range s.search.Options {
		s.search.Options[i].Threshold = 0.01
	}
	s.full("a") // the nearest to its threshold has no node all the same
	d := s.decide(t)
	want := "with capacity_threshold 0.17 of cluster c, c-"
	if len(d.Changes) != 1 || !strings.HasPrefix(d.Changes[0].Text, want) || d.FailedPhase != placement.PhaseThreshold {
		t.Fatalf("changes %+v after phase %q, want %s", d.Changes, d.FailedPhase, want)
	}
	if explained := placement.Explain(d); explained.Counterfactual != d.Changes[0].Text || !strings.HasPrefix(
		explained.Order, "3 clusters by user-dispersing",
	) {
		t.Errorf("order %q, otherwise %q", explained.Order, explained.Counterfactual)
	}
	s.search.Options[2].Threshold = d.Changes[0].Figure
	if d = s.decide(t); d.Outcome != placement.Placed || d.Request.Cluster != "c" {
		t.Errorf("with it: %s", d.Reason)
	}
}

func TestTheLastNodeComesFirst(t *testing.T) {
	s := three()
	s.search.LastNode = "a-1"
	d := s.decide(t)
	if d.Winner != "a-1" || len(d.Tried) > 0 || !strings.HasPrefix(d.Reason, "a-1 is where the VM ran last, and it fits") {
		t.Errorf("%s, tried %s", d.Reason, triedOf(d))
	}
	if order := placement.Explain(d).Order; !strings.HasPrefix(order, "no cluster is put in order: the VM ran on a-1 last") {
		t.Error(order)
	}
	if why := placement.WhyNotCluster(d, "b"); why != "no other cluster than a was looked at: the VM ran on a-1 last, and it fits" {
		t.Error(why)
	}
	s.full("a")
	d = s.decide(t)
	if got := triedOf(d); got != "*b c a" || d.Request.Last != "" {
		t.Errorf("a full last node: tried %s, last %q", got, d.Request.Last)
	}
	if order := placement.Explain(d).Order; !strings.HasPrefix(order, "a-1, where the VM ran last, does not do: memory-physical: ") {
		t.Error(order)
	}
	s.search.LastNode = "gone"
	if d = s.decide(t); d.Across.Last != "" || triedOf(d) != "*b c a" {
		t.Errorf("a last node that is gone: %+v", d.Across)
	}
	// In one cluster too it comes before nodes with fewer VMs of the customer.
	s = three()
	s.search.Options, s.search.LastNode = s.search.Options[2:], "c-0"
	if d = s.decide(t); d.Winner != "c-0" {
		t.Errorf("in one cluster: %s", d.Reason)
	}
	facts := s.facts["c-0"]
	facts.Available = ptr(units.MiB)
	s.facts["c-0"] = facts
	d = s.decide(t)
	if order := placement.Explain(d).Order; d.Winner != "c-1" || !strings.HasPrefix(
		order, "c-0, where the VM ran last, does not do: memory-physical: ",
	) {
		t.Errorf("in one cluster, and it is full: %s; %s", d.Reason, order)
	}
}

func TestWhatBindsAVMIsSaid(t *testing.T) {
	s := three()
	s.search.Options, s.search.Bound = s.search.Options[:1], "vdc/x names cluster a"
	d := s.decide(t)
	if d.Outcome != placement.Placed || len(d.Tried) > 0 ||
		!strings.HasPrefix(placement.Explain(d).Order, "no cluster is put in order: vdc/x names cluster a; ") {
		t.Errorf("%s: %s", d.Reason, placement.Explain(d).Order)
	}
	if why := placement.WhyNotCluster(d, "b"); why != "no other cluster was looked at: vdc/x names cluster a" {
		t.Error(why)
	}
	s.search.Bound, s.search.Options[0].Threshold = "", 0.85
	plain := placement.Place(view.New(noon, 1, s.records, s.facts), s.search.Options[0].Request, policies.Default(), 1)
	if diff := cmp.Diff(through(t, plain), s.decide(t)); diff != "" {
		t.Errorf("one option decides as Place does (-place +across):\n%s", diff)
	}
	s.search.Options = nil
	if d = Place(
		view.New(noon, 1, s.records, s.facts), s.search, 1,
	); d.Outcome != placement.Refused || d.Reason != "no node fits: there is no cluster that the VM may go to" {
		t.Errorf("no option: %s", d.Reason)
	}
}

func TestWhyNotAnotherCluster(t *testing.T) {
	s := three()
	s.full("b")
	s.search.Options[0].Threshold = 0.05
	d := s.decide(t)
	for name, want := range map[string]string{
		"a": "cluster a was left out: with the VM, 8.2 % of its CPU would be used, more than its threshold of 5 %",
		"b": "cluster b was 1st of 3 clusters, and has no node that fits: of 2 nodes, memory-physical refuses 2",
		"c": "",
		"d": "",
	} {
		if got := placement.WhyNotCluster(d, name); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	d = three().decide(t)
	want := "cluster a comes 3rd by user-dispersing at cluster level, cpu, weight 1, and b, which has a node that fits, before it: " +
		"46.9 % used and 0 VMs of the customer against 7.8 % used and 2 VMs of the customer"
	if got := placement.WhyNotCluster(d, "a"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestARecordKeepsSoManyClusters(t *testing.T) {
	s := newSite()
	for i := range placement.MaxTried + 9 {
		name := fmt.Sprintf("c%03d", i)
		s.cluster(name, "", 1, i%100)
		s.full(name)
	}
	last := s.search.Options[len(s.search.Options)-1].Cluster
	facts := s.facts[last+"-0"]
	facts.Available = ptr(60 * units.GiB)
	s.facts[last+"-0"] = facts
	s.vm(last+"-0", "acme", 0)
	d := s.decide(t)
	if len(d.Tried) != placement.MaxTried || d.Across.Omitted != 9 || d.Tried[placement.MaxTried-1].Outcome != placement.Placed ||
		d.Request.Cluster != last {
		t.Errorf("%d clusters and %d omitted, the last one %+v", len(d.Tried), d.Across.Omitted, d.Tried[len(d.Tried)-1])
	}
}

// Whatever the site, the first cluster of the order that has a node gets the VM, no cluster is tried twice, and the order can
// be made again.
func TestTheFirstClusterWithANodeWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite()
		s.search.Planner = rapid.SampledFrom([]string{"first-fit", "user-dispersing", "user-concentrated"}).Draw(t, "planner")
		s.search.Level = rapid.SampledFrom([]string{model.LevelPod, model.LevelCluster}).Draw(t, "level")
		s.search.Weight = rapid.SampledFrom([]float64{0, 0.25, 0.75, 1}).Draw(t, "weight")
		s.search.Capacity = rapid.SampledFrom([]string{model.CapacityCPU, model.CapacityRAM, model.CapacityCombined}).Draw(t, "capacity")
		s.search.CPUWeight = rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "weight of CPU")
		names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(2, 5).Draw(t, "clusters")]
		fits := map[string]bool{}
		for i, name := range names {
			s.cluster(
				name, rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "pod"), rapid.IntRange(0, 3).Draw(t, "nodes"),
				rapid.IntRange(0, 120).Draw(t, "used"),
			)
			for v := range rapid.IntRange(0, 4).Draw(t, "VMs") {
				s.vm(fmt.Sprint(name, "-", v%3), "acme", 0)
			}
			if rapid.IntRange(0, 2).Draw(t, "full") == 0 {
				s.full(name)
			}
			s.search.Options[i].Threshold = rapid.SampledFrom([]float64{0, 0.5, 0.85}).Draw(t, "threshold")
			option := s.search.Options[i]
			fits[name] = placement.Place(view.New(noon, 1, s.records, s.facts), option.Request, option.Policy, 1).Outcome == placement.Placed
		}
		d := s.decide(t)
		var seen []string
		for i, one := range d.Tried {
			if slices.Contains(seen, one.Cluster) {
				t.Fatalf("%s is there twice", one.Cluster)
			}
			seen = append(seen, one.Cluster)
			first := slices.IndexFunc(d.Tried, func(t placement.Tried) bool { return t.LeftOut == "" && fits[t.Cluster] })
			if (one.Outcome == placement.Placed) != (i == first) || one.Outcome == placement.Placed && d.Request.Cluster != one.Cluster {
				t.Fatalf("tried %s, and %v fit; placed in %s", triedOf(d), fits, d.Request.Cluster)
			}
		}
		if len(seen) != len(names) {
			t.Fatalf("tried %v of %v", seen, names)
		}
	})
}
