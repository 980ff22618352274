package placement

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/unanswered"
	"berth/coordinator/view"
	"berth/shared/units"
)

// specials are the compiled keys of a VM that has only what a cluster starts with.
func specials() []key.Weighted {
	system, _ := key.Compile([]key.Layer{{Level: key.LevelCluster, Keys: model.SpecialKeyDefaults()}})
	return key.WeightedOf(system)
}

// emptyNodes are nodes of 64 GiB that nothing is wrong with.
func emptyNodes(ids ...string) *view.Columns {
	n := len(ids)
	c := &view.Columns{Figures: view.Figures{
		Cluster: model.DefaultCluster, IDs: ids, Names: ids,
		Standing: filled(n, view.Stands), Known: filled(n, view.Known(0xff)),
		InventoryAt: same(n, noon.UnixNano()), TelemetryAt: same(n, noon.UnixNano()),
		Memory: filled(n, 64*units.GiB), RAMRatio: filled(n, 1.0), Overhead: filled(n, units.GiB),
		Promised: filled(n, 64*units.GiB), Used: same[units.Bytes](n, 0), Free: same(n, 62*units.GiB),
		VCPULimit: filled(n, 128.0), VCPUs: same(n, 0), Load: same(n, 0.0),
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

// same is a column with one value for all.
func same[T comparable](n int, value T) view.Column[T] { return view.ColumnOf(filled(n, value)...) }

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
			s.cluster.NodeKeys = append(s.cluster.NodeKeys, model.NodeKey{Name: name, Default: half("default", 0, 1)})
		}
	}
	s.cluster.Settings = map[string]string{
		model.SettingKeyScope: string(rapid.SampledFrom([]model.KeyScope{model.ScopeCustomer, model.ScopeCluster}).Draw(t, "scope")),
	}
	if spare := rapid.IntRange(-4, 2).Draw(t, "spare nodes"); spare > 0 {
		s.cluster.Settings[model.SettingSpareNodes] = fmt.Sprint(spare)
	}
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	for i := range nodes {
		id := fmt.Sprint("n", i)
		node := model.Node{
			ID: id, Name: "node-" + id, Cluster: model.DefaultCluster,
			Maintenance: rapid.IntRange(0, 5).Draw(t, "maintenance") == 0,
			Management:  rapid.IntRange(0, 3).Draw(t, "management") == 0,
			Labels:      rapid.SampledFrom([][]string{nil, nil, {"x"}}).Draw(t, "node labels"),
		}
		if rapid.IntRange(0, 5).Draw(t, "answers no starts") == 0 {
			node.Unanswered = unanswered.Mark{Operation: "o1", Since: noon.Add(-time.Hour)}
		}
		if rapid.Bool().Draw(t, "own settings") {
			node.Settings.RAMRatio = ptr(float64(rapid.IntRange(5, 30).Draw(t, "ratio")) / 10)
			node.Settings.Overhead = ptr(gib("overhead", 2))
			node.Keys = map[string]float64{"A": half("node key", -1, 2), "_C": half("node key", -1, 2)}
		}
		s.nodes = append(s.nodes, node)
		s.facts[id] = model.NodeFacts{
			Liveness:  rapid.SampledFrom([]model.Liveness{model.Up, model.Up, model.Up, model.Suspect}).Draw(t, "liveness"),
			Inventory: rapid.IntRange(0, 9).Draw(t, "inventory") > 0, InventoryAt: noon.Add(-20 * time.Second),
			Memory: gib("memory", 64) + units.GiB, CPUs: rapid.IntRange(1, 64).Draw(t, "cpus"), DomainsKnown: true,
			Telemetry:   rapid.IntRange(0, 9).Draw(t, "telemetry") > 0,
			TelemetryAt: noon.Add(-time.Duration(rapid.IntRange(0, 8).Draw(t, "age")) * time.Second),
			Available:   ptr(gib("available", 64)),
			Load1:       ptr(rapid.Float64Range(0, 80).Draw(t, "load")),
			CPUPressure: maybePressure(t),
		}
	}
	some := func(label string) string { return fmt.Sprint("n", rapid.IntRange(0, nodes-1).Draw(t, label)) }
	owner := func() model.Owner {
		return model.Owner{
			Customer:      rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "customer"),
			BillingEntity: rapid.SampledFrom([]string{"", "b1"}).Draw(t, "billing entity"),
		}
	}
	labels := rapid.SampledFrom([][]string{nil, nil, {"x"}, {"x", "y"}})
	class := rapid.SampledFrom([]model.KeyClass{model.CustomerKey, model.BillingEntityKey})
	for i := range rapid.IntRange(0, 10).Draw(t, "vms") {
		vm := model.VM{
			ID: fmt.Sprint("u", i), Name: fmt.Sprint("vm", i), Desired: model.Running, Holder: some("holder"), Epoch: 1,
			Spec:      model.VMSpec{Memory: gib("size", 16), VCPUs: rapid.IntRange(1, 16).Draw(t, "vcpus")},
			StartedAt: noon.Add(-time.Duration(rapid.IntRange(0, 8).Draw(t, "start")) * time.Second), Owner: owner(),
			Labels: labels.Draw(t, "labels"), Migration: rapid.SampledFrom([]model.Migration{"", "", model.MigrateNever}).Draw(t, "migration"),
			HA: rapid.Bool().Draw(t, "ha"),
		}
		if rapid.IntRange(0, 5).Draw(t, "on its way") == 0 {
			s.reservations = append(s.reservations, model.Reservation{
				Node: some("target"), VM: vm.ID, Name: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Operation: "o" + vm.ID,
			})
		}
		for range rapid.IntRange(0, 2).Draw(t, "shown") {
			vm.Resident = append(vm.Resident, model.ResidentKey{
				Class: class.Draw(t, "class"), Name: names.Draw(t, "name"), Value: half("value", 0, 2),
			})
		}
		s.vms = append(s.vms, vm)
	}
	request := Request{
		Purpose: ForStart, VM: "new", VMName: "new", Memory: gib("request", 16) + units.MiB,
		VCPUs: rapid.IntRange(1, 8).Draw(t, "request vcpus"), Owner: owner(), Labels: labels.Draw(t, "request labels"),
	}
	if len(s.vms) > 0 && rapid.Bool().Draw(t, "migrate") {
		vm := s.vms[0]
		request = Request{
			Purpose: ForMigrate, VM: vm.ID, VMName: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Current: vm.Holder,
			Owner: vm.Owner, Labels: vm.Labels, HA: vm.HA, Leave: rapid.IntRange(0, 3).Draw(t, "leave") == 0,
		}
		if rapid.Bool().Draw(t, "if better") {
			request.IfBetter = float64(rapid.IntRange(1, 40).Draw(t, "gain"))
		}
	}
	if request.Current == "" {
		request.HA, request.Restart = rapid.Bool().Draw(t, "request ha"), rapid.IntRange(0, 5).Draw(t, "restart") == 0
	}
	if rapid.IntRange(0, 3).Draw(t, "among") == 0 {
		request.Among = []string{some("among")}
	}
	if rapid.IntRange(0, 2).Draw(t, "prefer") == 0 {
		request.Preferred = []string{some("prefer")}
	}
	if len(s.vms) > 2 && rapid.IntRange(0, 4).Draw(t, "unit") == 0 {
		request.Unit = &Unit{VMs: []string{"u1", "u2"}, Memory: s.vms[1].Spec.Memory + s.vms[2].Spec.Memory, VCPUs: 2}
	}
	drawGroups(t, s, nodes)
	drawAround(t, s, &request)
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
	counts := func(weigher string, factor float64) policies.Factor {
		return policies.Factor{Weigher: weigher, Factor: factor}
	}
	weighers := rapid.SampledFrom([][]policies.Factor{
		{counts(policies.CustomerScore, 1)},
		policies.Default().Weighers,
		{counts(policies.SystemScore, 1)},
		{},
		{counts(policies.SystemScore, 2), counts(policies.CustomerScore, 3)},
		{
			counts("cpu-load", 2), counts("memory-free", 1), counts("node-affinity", 20), counts("vm-affinity", 1),
			counts("preferred-nodes", 99),
		},
		{counts("vm-count", 2), counts("vm-affinity", 0.5), counts(policies.CustomerScore, 1)},
	}).Draw(t, "weighers")
	combined := rapid.SampledFrom([]string{SelectRank, SelectRank, "percentage-dynamic", "sum"}).Draw(t, "selector")
	loose := rapid.IntRange(0, 5).Draw(t, "loose") == 0
	s.change = func(p *policies.Policy) {
		p.Weighers, p.Selector, p.ManagerGrace = weighers, combined, 2
		if !bands {
			p.Gate = policies.Gate{Kind: policies.GateOff}
		}
		if loose { // then no column answers for the others together
			p.Constraints = except(p.Constraints, "memory-physical")
		}
	}
	return s, request, rapid.Uint64().Draw(t, "seed")
}

// drawGroups adds affinity groups of any kind. The VM to be placed may be a member by its ID.
func drawGroups(t *rapid.T, s *scenario, nodes int) {
	polarity := rapid.SampledFrom([]model.Polarity{model.Disabled, model.Positive, model.Negative})
	for i := range rapid.IntRange(0, 4).Draw(t, "groups") {
		record := model.Resource{
			Kind: model.KindGroup, ID: fmt.Sprint("g", i), Name: fmt.Sprint("group-", i),
			Settings: map[string]string{
				model.SettingVMsRule: string(polarity.Draw(t, "VM rule")), model.SettingNodesRule: string(polarity.Draw(t, "node rule")),
				model.SettingVMsEnforcing:   fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "hard VM rule") == 0),
				model.SettingNodesEnforcing: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "hard node rule") == 0),
				model.SettingPriority:       fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "priority")),
			},
			Members: map[string][]string{}, Lists: map[string][]string{},
		}
		for _, id := range []string{"new", "u0", "u1", "u2", "u3", "u4"} {
			if rapid.IntRange(0, 2).Draw(t, "member") == 0 {
				record.Members[model.MembersVMs] = append(record.Members[model.MembersVMs], id)
			}
		}
		for node := range nodes {
			if rapid.IntRange(0, 2).Draw(t, "node member") == 0 {
				record.Members[model.MembersNodes] = append(record.Members[model.MembersNodes], fmt.Sprint("n", node))
			}
		}
		for _, list := range []string{model.ListVMLabels, model.ListNodeLabels} {
			if rapid.IntRange(0, 3).Draw(t, "by label") == 0 {
				record.Lists[list] = []string{"x"}
			}
		}
		s.groups = append(s.groups, record)
	}
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

// maybePressure is that of CPUs, which some kernels do not measure.
func maybePressure(t *rapid.T) *float64 {
	if rapid.IntRange(0, 4).Draw(t, "pressure unknown") == 0 {
		return nil
	}
	return ptr(float64(rapid.IntRange(0, 200).Draw(t, "pressure")) / 2)
}
