package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/shared/units"
)

// aroundRecords are two clusters, a shared pool and a local one in the first, and VMs of two customers.
func aroundRecords() (Records, map[string]model.NodeFacts) {
	pool := func(id string, scope model.PoolScope, over string) model.Resource {
		return model.Resource{ID: id, Kind: model.KindPool, Name: "the-" + id, Settings: map[string]string{
			model.SettingScope: string(scope), model.SettingPoolSource: "lv-" + id, model.SettingOverProvisioning: over,
		}}
	}
	volume := func(id string, kind model.Kind, pool string, size units.Bytes, nodes ...string) model.Resource {
		return model.Resource{ID: id, Kind: kind, Name: id, Volume: &model.Volume{Pool: pool, Nodes: nodes, Capacity: size}}
	}
	records := Records{
		Clusters: []model.Resource{model.DefaultClusterRecord(), {ID: "id-west", Kind: model.KindCluster, Name: "west"}},
		Nodes: []model.Node{
			{ID: "n1", Cluster: model.DefaultCluster},
			{ID: "n2", Cluster: model.DefaultCluster},
			{ID: "n3", Cluster: model.DefaultCluster},
			{ID: "w1", Cluster: "west"},
		},
		VMs: []model.VM{
			{ID: "a1", Holder: "n1", Owner: model.Owner{Customer: "acme"}, Spec: model.VMSpec{VCPUs: 2, Memory: units.GiB}, Disks: []string{"d1"}},
			{ID: "a2", Holder: "n1", Owner: model.Owner{Customer: "acme"}, Spec: model.VMSpec{VCPUs: 2, Memory: units.GiB}, LastNode: "w1"},
			{ID: "a3", Owner: model.Owner{Customer: "acme"}, LastNode: "w1"}, // stopped
			{ID: "a4", Owner: model.Owner{Customer: "acme"}, LastNode: "w1", Disks: []string{"d4"}},
			{ID: "a5", Owner: model.Owner{Customer: "acme"}, LastNode: "gone"},
			{ID: "b1", Holder: "w1", Owner: model.Owner{Customer: "blue"}, Spec: model.VMSpec{VCPUs: 4, Memory: units.GiB}},
			{ID: "x1", Holder: "n2"}, // nobody's
		},
		Reservations: []model.Reservation{
			{Node: "n2", VM: "a2", Memory: units.GiB, VCPUs: 2, Operation: "move"},
			{
				Node: "n2", VM: "a4", Memory: units.GiB, VCPUs: 2, Operation: "start",
				Volumes: []model.VolumeOrder{{Disk: "d4", Pool: "loc", Capacity: 3 * units.GiB}},
			},
		},
		Pools: []model.Resource{pool("sha", model.PoolShared, "1.5"), pool("loc", model.PoolLocal, "")},
		Disks: []model.Resource{
			volume("d1", model.KindDisk, "loc", 10*units.GiB, "n1"), volume("i1", model.KindImage, "loc", 2*units.GiB, "n1", "n2"),
			volume("d2", model.KindDisk, "sha", 20*units.GiB),
		},
	}
	known := func(pools ...model.PoolFacts) model.NodeFacts {
		facts := healthy()
		facts.Pools, facts.PoolsKnown = pools, true
		return facts
	}
	return records, map[string]model.NodeFacts{
		"n1": known(
			model.PoolFacts{Name: "lv-loc", Active: true, Capacity: 50 * units.GiB, Available: 40 * units.GiB},
			model.PoolFacts{Name: "lv-sha", Active: true, Capacity: 100 * units.GiB, Available: 80 * units.GiB},
		),
		"n2": known(
			model.PoolFacts{Name: "lv-loc", Active: false, Capacity: 50 * units.GiB, Available: 40 * units.GiB},
			model.PoolFacts{Name: "lv-sha", Active: true, Capacity: 100 * units.GiB, Available: 70 * units.GiB},
		),
		"n3": healthy(), "w1": known(),
	}
}

func TestAccountsAreCountedWhereVMsAreAndGo(t *testing.T) {
	records, facts := aroundRecords()
	view := New(noon, 1, records, facts)
	want := AccountVMs{Total: 3, Clusters: map[string]int{model.DefaultCluster: 3}, Nodes: map[string]int{"n1": 2, "n2": 2}}
	if diff := cmp.Diff(want, view.AccountVMs("acme")); diff != "" {
		t.Error(diff)
	}
	if none := view.AccountVMs(""); none.Total != 0 || len(none.Nodes) > 0 {
		t.Errorf("nobody has %+v", none)
	}
	if diff := cmp.Diff(map[string]int{model.DefaultCluster: 3, "west": 1}, view.KeptVMs("acme")); diff != "" {
		t.Errorf("with those that are stopped: %s", diff)
	}
	without := view.Without("a1", "n1")
	if got := without.AccountVMs("acme"); got.Total != 2 || got.Nodes["n1"] != 1 {
		t.Errorf("without one: %+v", got)
	}
	if diff := cmp.Diff([]int{1, 2, 0}, without.Columns(model.DefaultCluster).Accounts.VMs("acme")); diff != "" {
		t.Errorf("by node without one: %s", diff)
	}
	columns := view.Columns(model.DefaultCluster).Clone()
	columns.Move(0, 2, view.Nodes.At(0).Allocations[0])
	if diff := cmp.Diff([]int{1, 2, 1}, columns.Accounts.VMs("acme")); diff != "" {
		t.Errorf("after a move: %s", diff)
	}
	if diff := cmp.Diff([]int{2, 2, 0}, view.Columns(model.DefaultCluster).Accounts.VMs("acme")); diff != "" {
		t.Errorf("the original after a move of the copy: %s", diff)
	}
}

func TestPoolsAddUpWhatIsPromised(t *testing.T) {
	records, facts := aroundRecords()
	records.Disks[1].Copies = []model.Volume{{Pool: "sha", Capacity: 2 * units.GiB}} // the image is in both pools
	view := New(noon, 1, records, facts)
	pools := view.Pools()
	if len(pools) != 2 || pools[0].Record.ID != "loc" || pools[1].Record.ID != "sha" {
		t.Fatalf("pools %+v", pools)
	}
	want := []PoolShare{
		{
			Nodes: []string{"n1"}, Capacity: 50 * units.GiB, Available: 40 * units.GiB, Promised: 12 * units.GiB, Limit: 50 * units.GiB,
			Disks: 1, Images: 1,
		},
		{Missing: []PoolLacks{{"n2", HasInactive}}, Promised: 5 * units.GiB, Images: 1},
		{Missing: []PoolLacks{{"n3", HasUnknown}}},
	}
	if diff := cmp.Diff(want, pools[0].Shares); diff != "" {
		t.Errorf("the local one: %s", diff)
	}
	want = []PoolShare{{
		Nodes: []string{"n1", "n2"}, Missing: []PoolLacks{{"n3", HasUnknown}},
		Capacity: 100 * units.GiB, Available: 70 * units.GiB, Promised: 22 * units.GiB, Limit: 150 * units.GiB, Disks: 1, Images: 1,
	}}
	if diff := cmp.Diff(want, pools[1].Shares); diff != "" {
		t.Errorf("the shared one: %s", diff)
	}
	columns := view.Without("a1", "n1").Columns(model.DefaultCluster).Around(Needs{Pools: true, Customer: "acme"})
	if loc := columns.Pools[0]; loc.On(0).Volumes != 1 || loc.On(1).Volumes != 1 || loc.On(2).Volumes != 0 {
		t.Errorf("volumes of acme in the local pool: %+v", loc.Shares)
	}
	if sha := columns.Pools[1]; sha.On(2).Volumes != 0 || sha.On(2).Limit != 150*units.GiB || sha.Has[2] != HasUnknown {
		t.Errorf("the shared pool: %+v", sha)
	}
	if plain := view.Columns(model.DefaultCluster); plain.Around(Needs{}) != plain || plain.Pools != nil {
		t.Error("who needs nothing gets more")
	}
	cut := columns.Select([]int{1, 2})
	if cut.Pools[0].On(0).Promised != 5*units.GiB || cut.Pools[1].On(1).Limit != 150*units.GiB || cut.AccountVMs[0] != 2 {
		t.Errorf("cut out: %+v", cut.Pools)
	}
}

func TestABaselineIsWhatAllNodesCanRun(t *testing.T) {
	for _, c := range []struct {
		name, own, want string
		models          [][]string
	}{
		{
			"the best of what they share", "", "Haswell-noTSX-IBRS",
			[][]string{{"Haswell", "Haswell-noTSX-IBRS", "Nehalem", "qemu64"}, {"Cascadelake-Server", "Haswell", "Haswell-noTSX-IBRS", "qemu64"}},
		},
		{"a node that has not told does not count", "", "Nehalem", [][]string{nil, {"Nehalem", "qemu64"}}},
		{"of two makers", "", "Westmere", [][]string{{"EPYC", "Westmere", "qemu64"}, {"Skylake-Client", "Westmere", "qemu64"}}},
		{"the later version", "", "EPYC-Rome-v4", [][]string{{"EPYC", "EPYC-Rome", "EPYC-Rome-v2", "EPYC-Rome-v4", "EPYC-v9"}}},
		{"what is not listed is none", "", "", [][]string{{"max", "my-v2", "x-v0"}}},
		{"nothing in common", "", "", [][]string{{"Nehalem"}, {"POWER9"}}},
		{"the cluster's own", "Penryn", "Penryn", [][]string{{"Nehalem"}}},
		{"nobody has told", "", "", [][]string{nil, nil}},
	} {
		records := Records{Clusters: []model.Resource{{
			ID: "c", Kind: model.KindCluster, Name: "east", Settings: map[string]string{model.SettingCPUModel: c.own},
		}}}
		facts := map[string]model.NodeFacts{}
		for i, models := range c.models {
			id := string(rune('a' + i))
			records.Nodes = append(records.Nodes, model.Node{ID: id, Cluster: "east"})
			known := healthy()
			known.CPUModels = models
			facts[id] = known
		}
		records.Nodes = append(records.Nodes, model.Node{ID: "z", Cluster: "west"})
		known := healthy()
		known.CPUModels = []string{"486"}
		facts["z"] = known
		if got := New(noon, 1, records, facts).CPUBaseline("east"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestUsageIsOfNodesThatStandWell(t *testing.T) {
	records, facts := aroundRecords()
	records.Nodes[2].Maintenance = true
	view := New(noon, 1, records, facts)
	usage := view.Usage()
	node := view.Nodes.At(0)
	if east := usage[model.DefaultCluster]; east.Nodes != 2 || east.VCPUs != 8 || east.VCPULimit != 2*node.VCPULimit ||
		east.Memory != 4*units.GiB || east.MemoryLimit != 2*node.PromisedLimit {
		t.Errorf("%+v", east)
	}
	all := Usage{VCPUs: 3, VCPULimit: 12, Memory: units.GiB, MemoryLimit: 2 * units.GiB}
	for capacity, want := range map[string]float64{model.CapacityCPU: 0.25, model.CapacityRAM: 0.5, model.CapacityCombined: 0.375, "": 0.25} {
		if got := all.Share(capacity, 0.5); got != want {
			t.Errorf("%s: %v, want %v", capacity, got, want)
		}
	}
	if mostly := all.Share(model.CapacityCombined, 0.75); mostly != 0.3125 {
		t.Errorf("three quarters of CPU and one of memory: %v", mostly)
	}
	if none := (Usage{}); none.Share(model.CapacityCombined, 0.5) != 1 {
		t.Errorf("a cluster that has nothing is used by %v", none.Share(model.CapacityCombined, 0.5))
	}
}
