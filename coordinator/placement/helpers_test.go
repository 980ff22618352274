package placement

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/shared/units"
)

// specials are the compiled keys of a VM that has only what a cluster starts with.
func specials() []key.Weighted {
	system, _ := key.Compile([]key.Layer{{Level: key.LevelCluster, Keys: cluster.SpecialKeyDefaults()}})
	return key.WeightedOf(system)
}

// emptyNodes are nodes of 64 GiB that nothing is wrong with.
func emptyNodes(ids ...string) *cluster.Columns {
	n := len(ids)
	c := &cluster.Columns{Figures: cluster.Figures{
		Cluster: cluster.DefaultCluster, IDs: ids, Names: ids,
		Standing: filled(n, cluster.Stands), Known: filled(n, cluster.Known(0xff)),
		InventoryAt: filled(n, noon.UnixNano()), TelemetryAt: filled(n, noon.UnixNano()),
		Memory: filled(n, 64*units.GiB), RAMRatio: filled(n, 1.0), Overhead: filled(n, units.GiB),
		Promised: filled(n, 64*units.GiB), Used: make([]units.Bytes, n), Free: filled(n, 62*units.GiB),
		VCPULimit: filled(n, 128.0), VCPUs: make([]int, n), Load: make([]float64, n),
	}}
	c.Derive()
	return c
}

func filled[T any](n int, value T) []T {
	column := make([]T, n)
	for i := range column {
		column[i] = value
	}
	return column
}

// draws makes a random cluster with at least one node, a request and a policy, of every kind that the engine knows.
func draws(t *rapid.T) (*scenario, Request, uint64) {
	s := newScenario()
	gib := func(label string, most int64) units.Bytes {
		return units.Bytes(rapid.Int64Range(0, most*4).Draw(t, label)) * units.GiB / 4
	}
	names := rapid.SampledFrom([]string{"A", "B", "_C"})
	half := func(label string, from, to int) float64 {
		return float64(rapid.IntRange(from*2, to*2).Draw(t, label)) / 2
	}
	for _, name := range []string{"A", "D", "E", "F", "_C"} {
		if rapid.IntRange(0, 3).Draw(t, "declared") > 0 {
			s.cluster.NodeKeys = append(s.cluster.NodeKeys, cluster.NodeKey{Name: name, Default: half("default", 0, 1)})
		}
	}
	s.cluster.Settings = map[string]string{
		cluster.SettingKeyScope: string(rapid.SampledFrom([]cluster.KeyScope{cluster.ScopeCustomer, cluster.ScopeCluster}).Draw(t, "scope")),
	}
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	for i := range nodes {
		id := fmt.Sprint("n", i)
		node := cluster.Node{
			ID: id, Name: "node-" + id, Cluster: cluster.DefaultCluster,
			Maintenance: rapid.IntRange(0, 5).Draw(t, "maintenance") == 0,
		}
		if rapid.Bool().Draw(t, "own settings") {
			node.Settings.RAMRatio = ptr(float64(rapid.IntRange(5, 30).Draw(t, "ratio")) / 10)
			node.Settings.Overhead = ptr(gib("overhead", 2))
			node.Keys = map[string]float64{"A": half("node key", -1, 2), "_C": half("node key", -1, 2)}
		}
		s.nodes = append(s.nodes, node)
		s.facts[id] = cluster.NodeFacts{
			Liveness:  rapid.SampledFrom([]cluster.Liveness{cluster.Up, cluster.Up, cluster.Up, cluster.Suspect}).Draw(t, "liveness"),
			Inventory: rapid.IntRange(0, 9).Draw(t, "inventory") > 0, InventoryAt: noon.Add(-20 * time.Second),
			Memory: gib("memory", 64) + units.GiB, CPUs: rapid.IntRange(1, 64).Draw(t, "cpus"), DomainsKnown: true,
			Telemetry:   rapid.IntRange(0, 9).Draw(t, "telemetry") > 0,
			TelemetryAt: noon.Add(-time.Duration(rapid.IntRange(0, 8).Draw(t, "age")) * time.Second),
			Available:   ptr(gib("available", 64)),
			Load1:       ptr(rapid.Float64Range(0, 80).Draw(t, "load")),
		}
	}
	some := func(label string) string { return fmt.Sprint("n", rapid.IntRange(0, nodes-1).Draw(t, label)) }
	owner := func() cluster.Owner {
		return cluster.Owner{
			Customer:      rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "customer"),
			BillingEntity: rapid.SampledFrom([]string{"", "b1"}).Draw(t, "billing entity"),
		}
	}
	class := rapid.SampledFrom([]cluster.KeyClass{cluster.CustomerKey, cluster.BillingEntityKey})
	for i := range rapid.IntRange(0, 10).Draw(t, "vms") {
		vm := cluster.VM{
			ID: fmt.Sprint("u", i), Name: fmt.Sprint("vm", i), Desired: cluster.Running, Holder: some("holder"), Epoch: 1,
			Spec:      cluster.VMSpec{Memory: gib("size", 16), VCPUs: rapid.IntRange(1, 16).Draw(t, "vcpus")},
			StartedAt: noon.Add(-time.Duration(rapid.IntRange(0, 8).Draw(t, "start")) * time.Second), Owner: owner(),
		}
		for range rapid.IntRange(0, 2).Draw(t, "shown") {
			vm.Resident = append(vm.Resident, cluster.ResidentKey{
				Class: class.Draw(t, "class"), Name: names.Draw(t, "name"), Value: half("value", 0, 2),
			})
		}
		s.vms = append(s.vms, vm)
	}
	request := Request{
		Purpose: ForStart, VM: "new", VMName: "new", Memory: gib("request", 16) + units.MiB,
		VCPUs: rapid.IntRange(1, 8).Draw(t, "request vcpus"), Owner: owner(),
	}
	if len(s.vms) > 0 && rapid.Bool().Draw(t, "migrate") {
		vm := s.vms[0]
		request = Request{
			Purpose: ForMigrate, VM: vm.ID, VMName: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Current: vm.Holder,
			Owner: vm.Owner,
		}
		if rapid.Bool().Draw(t, "if better") {
			request.IfBetter = float64(rapid.IntRange(1, 40).Draw(t, "gain"))
		}
	}
	request.SystemKeys = specials()
	for i := range request.SystemKeys {
		request.SystemKeys[i].Weight = float64(rapid.IntRange(-50, 100).Draw(t, "weight"))
	}
	for _, name := range []string{"A", "D", "E", "F"} {
		if rapid.IntRange(0, 3).Draw(t, "node key wanted") > 0 {
			request.SystemKeys = append(request.SystemKeys, key.Weighted{Name: name, Value: half("wanted", 0, 1), Weight: half("weight", -80, 80)})
		}
	}
	for _, name := range []string{"A", "B", "_C"} {
		if rapid.Bool().Draw(t, "customer key") {
			request.CustomerKeys = append(request.CustomerKeys, key.Weighted{
				Name: name, Class: class.Draw(t, "class"), Value: half("wanted", 0, 2), Weight: half("weight", -100, 100),
			})
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "pinned") == 0 {
		request.Pinned = some("pin")
	}
	if rapid.IntRange(0, 3).Draw(t, "excluded") == 0 {
		request.Excluded = []string{some("exclude")}
	}
	if rapid.IntRange(0, 7).Draw(t, "home") == 0 {
		request.Home = some("home")
	}
	bands := rapid.IntRange(0, 3).Draw(t, "bands") > 0
	weighers := rapid.SampledFrom([][]Factor{
		{{customerScore, 1}}, {{customerScore, 1}}, {{systemScore, 1}}, {}, {{systemScore, 2}, {customerScore, 3}},
	}).Draw(t, "weighers")
	loose := rapid.IntRange(0, 5).Draw(t, "loose") == 0
	s.change = func(p *Policy) {
		p.Weighers = weighers
		if !bands {
			p.Gate = Gate{Kind: GateOff}
		}
		if loose { // then no column answers for the others together
			p.Constraints = except(p.Constraints, "memory-physical")
		}
	}
	return s, request, rapid.Uint64().Draw(t, "seed")
}

func except(names []string, name string) []string {
	var kept []string
	for _, one := range names {
		if one != name {
			kept = append(kept, one)
		}
	}
	return kept
}
