package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
	"berth/coordinator/view"
	"berth/shared/units"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 123456789, time.UTC)

// live is a cluster as the coordinators could know it.
type live struct {
	state        estate.State
	reservations []model.Reservation
	plans        []model.Plan
	facts        map[string]model.NodeFacts
	pools        []string // IDs
}

func (l *live) view() *view.View {
	records := recordsOf(&l.state)
	records.Reservations = l.reservations
	return view.New(noon, 42, records, l.facts)
}

func maybe[T any](t *rapid.T, value T) *T {
	if rapid.IntRange(0, 4).Draw(t, "unknown") == 0 {
		return nil
	}
	return &value
}

func chance(t *rapid.T, name string, in int) bool { return rapid.IntRange(1, in).Draw(t, name) == 1 }

func size(t *rapid.T, name string, most units.Bytes) units.Bytes {
	return units.Bytes(rapid.Int64Range(int64(model.MinVMMemory), int64(most)).Draw(t, name))
}

var (
	keyNames = []string{"A", "B", "_R"}
	values   = rapid.SampledFrom([]float64{0, 0.25, 0.5, 1, 1.75, -3})
	weights  = rapid.SampledFrom([]float64{100, 40, -100, 0.5})
)

// keysOf are keys as they may be on a resource of the kind.
func keysOf(t *rapid.T, kind model.Kind) []model.Key {
	var keys []model.Key
	for _, class := range []model.KeyClass{model.BillingEntityKey, model.CustomerKey, model.SystemKey} {
		for _, name := range keyNames {
			key := model.Key{Class: class, Name: name, Value: values.Draw(t, "value"), Weight: weights.Draw(t, "weight")}
			if chance(t, "key", 4) && model.ValidateKey(kind, key) == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// drawLive draws a cluster with everything that placement looks at.
func drawLive(t *rapid.T) *live {
	l := &live{facts: make(map[string]model.NodeFacts)}
	add := func(kind model.Kind, name string, links, settings map[string]string) string {
		r := model.Resource{ID: "id-" + string(kind) + name, Kind: kind, Name: name, Links: links, Settings: settings, Keys: keysOf(t, kind)}
		if name == model.DefaultCluster {
			r.ID = name
		}
		if kind == model.KindCluster {
			r.Keys = append(model.SpecialKeyDefaults(), r.Keys...)
			slices.SortFunc(r.Keys, func(a, b model.Key) int { return cmpKeys(a, b) })
			for _, name := range keyNames {
				if chance(t, "declared", 2) {
					key := model.NodeKey{Name: name, Default: values.Draw(t, "default"), Sticky: chance(t, "sticky", 2)}
					if key.Sticky {
						key.Weight = weights.Draw(t, "sticky weight")
					}
					r.NodeKeys = append(r.NodeKeys, key)
				}
			}
		}
		l.state.Resources = append(l.state.Resources, r)
		return r.ID
	}
	settings := map[string]string{
		"ram_ratio": "1.5", "customer_key_scope": rapid.SampledFrom([]string{"customer", "cluster"}).Draw(t, "scope"),
	}
	if chance(t, "optimistic", 2) {
		settings["physical_ledger"] = "optimistic"
	}
	if chance(t, "default declared", 2) {
		add(model.KindCluster, model.DefaultCluster, nil, nil)
	}
	zone := add(model.KindZone, "here", nil, map[string]string{
		model.SettingPlanner: rapid.SampledFrom([]string{"first-fit", "user-dispersing", "user-concentrated"}).Draw(t, "planner"),
	})
	pod := add(model.KindPod, "row", map[string]string{"zone": zone}, nil)
	other := add(model.KindCluster, "other", map[string]string{"pod": pod}, settings)
	add(model.KindCluster, "empty", map[string]string{"pod": pod}, nil)
	l.pools = []string{
		add(model.KindPool, "common", map[string]string{"cluster": other}, map[string]string{model.SettingScope: string(model.PoolShared)}),
		add(model.KindPool, "fast", map[string]string{"cluster": other}, map[string]string{model.SettingScope: string(model.PoolLocal)}),
	}
	seller := add(model.KindBillingEntity, "seller", nil, nil)
	customers := []string{
		add(model.KindCustomer, "acme", map[string]string{"billing_entity": seller}, nil), add(model.KindCustomer, "zeta", nil, nil),
	}
	vdcs := []string{
		"", add(model.KindVDC, "prod", map[string]string{"customer": customers[0], "cluster": other}, nil),
		add(model.KindVDC, "test", map[string]string{"customer": customers[1], "cluster": other}, nil),
		add(model.KindVDC, "web", map[string]string{"customer": customers[1]}, nil),
		add(model.KindVDC, "wide", map[string]string{"customer": customers[0], "pod": pod}, nil),
	}
	l.drawNodes(t)
	l.drawVMs(t, vdcs, customers)
	l.drawDisks(t)
	l.drawGroups(t)
	l.drawPlans(t)
	for id, facts := range l.facts {
		slices.SortFunc(facts.Domains, func(a, b model.Domain) int { return cmpText(a.UUID, b.UUID) })
		l.facts[id] = facts
	}
	return l
}

func (l *live) drawNodes(t *rapid.T) {
	n := rapid.IntRange(2, 6).Draw(t, "nodes")
	for i := range n {
		// IDs sort otherwise than names, and ties are drawn by them.
		node := model.Node{
			ID: fmt.Sprintf("%c%d", 'z'-i, i), Name: fmt.Sprintf("hv%d", i),
			Cluster: rapid.SampledFrom([]string{"default", "other"}).Draw(t, "cluster"),
		}
		if chance(t, "node label", 2) {
			node.Labels = []string{"left"}
		}
		node.Unbalanced, node.Management = chance(t, "unbalanced", 4), chance(t, "management", 4)
		if chance(t, "own ratio", 3) {
			ratio, overhead := rapid.Float64Range(0.5, 4).Draw(t, "ratio"), size(t, "overhead", 2*units.GiB)
			node.Settings = model.NodeSettings{RAMRatio: &ratio, Overhead: &overhead}
		}
		if chance(t, "maintenance", 6) {
			node.Maintenance, node.MaintenanceReason = true, rapid.SampledFrom([]string{"", "new memory: 2 of 4"}).Draw(t, "reason")
		}
		if declared, known := l.state.ResourceByName(model.KindCluster, node.Cluster); known {
			for _, key := range declared.NodeKeys {
				if chance(t, "value set", 2) {
					if node.Keys == nil {
						node.Keys = make(map[string]float64)
					}
					node.Keys[key.Name] = values.Draw(t, "node value")
				}
			}
		}
		l.state.Nodes = append(l.state.Nodes, node)
		facts := model.NodeFacts{
			Liveness: rapid.SampledFrom([]model.Liveness{model.Up, model.Up, model.Up, model.Suspect, model.Degraded, ""}).Draw(t, "liveness"),
		}
		if facts.Liveness != model.Up && facts.Liveness != "" {
			facts.LivenessReason = "silent for 7s"
		}
		age := func(name string) time.Time {
			return noon.Add(-time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, name)))
		}
		if !chance(t, "no inventory", 8) {
			facts.Inventory, facts.InventoryAt = true, age("inventory age")
			facts.Memory, facts.CPUs = 64*units.GiB+size(t, "memory", units.GiB), rapid.IntRange(1, 64).Draw(t, "cpus")
			facts.DomainsKnown = !chance(t, "no domains", 8)
			l.drawAround(t, &facts)
		}
		if !chance(t, "no telemetry", 8) {
			facts.Telemetry, facts.TelemetryAt = true, age("telemetry age")
			facts.Available, facts.KSMSaved = maybe(t, size(t, "available", 64*units.GiB)), maybe(t, size(t, "ksm", units.GiB))
			facts.Load1, facts.CPUBusy = maybe(t, rapid.Float64Range(0, 20).Draw(t, "load")), maybe(t, rapid.Float64Range(0, 1).Draw(t, "busy"))
			facts.CPUPressure = maybe(t, rapid.Float64Range(0, 100).Draw(t, "pressure"))
		}
		l.facts[node.ID] = facts
	}
}

func (l *live) drawVMs(t *rapid.T, vdcs, customers []string) {
	domain := func(node *model.Node, uuid, name string, memory units.Bytes) {
		facts := l.facts[node.ID]
		d := model.Domain{
			UUID: uuid, Name: name, Memory: memory, VCPUs: rapid.IntRange(1, 4).Draw(t, "domain vcpus"),
			State: rapid.SampledFrom([]model.DomainState{
				model.DomainRunning, model.DomainRunning, model.DomainPaused, model.DomainPausedMigration, model.DomainShutoff,
			}).Draw(t, "state"),
		}
		if d.State.Holds() { // of others there is nothing to be read
			d.Resident, d.CPU = maybe(t, memory/2), maybe(t, rapid.Float64Range(0, 2).Draw(t, "cpu"))
			d.Balloon = maybe(t, memory/units.Bytes(rapid.IntRange(1, 5).Draw(t, "balloon")))
		}
		if chance(t, "young", 3) {
			d.Since = facts.TelemetryAt
		}
		facts.Domains = append(facts.Domains, d)
		l.facts[node.ID] = facts
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "vms") {
		vm := model.VM{
			ID: fmt.Sprintf("uuid-%d", 9-i), Name: fmt.Sprintf("vm%d", i), Desired: model.Stopped,
			Spec: model.VMSpec{Memory: size(t, "vm memory", 20*units.GiB), VCPUs: rapid.IntRange(1, 8).Draw(t, "vcpus")},
			VDC:  rapid.SampledFrom(vdcs).Draw(t, "vdc"), Keys: keysOf(t, model.KindVM),
			Migration: rapid.SampledFrom([]model.Migration{"", model.MigrateManual, model.MigrateNever}).Draw(t, "migration"),
		}
		if chance(t, "labelled", 2) {
			vm.Labels = []string{"red"}
		}
		if chance(t, "moved", 2) {
			vm.MovedAt = noon.Add(-time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "moved ago")))
		}
		resolved, err := estate.Resolve(&l.state, vm)
		if err != nil {
			t.Fatal(err)
		}
		var own []*model.Node
		for n := range l.state.Nodes {
			if l.state.Nodes[n].Cluster == resolved.Cluster {
				own = append(own, &l.state.Nodes[n])
			}
		}
		if chance(t, "started before", 2) && len(own) > 0 {
			vm.Sticky = model.StickyCopies(&resolved.Record, own[0])
			vm.Home = own[0].ID
		}
		if !chance(t, "stopped", 3) && len(own) > 0 {
			vm.Resident, vm.Owner = residentsOf(&resolved), resolved.Owner
			if chance(t, "changed since", 3) { // keys and owner are as they were at the start
				vm.Resident = []model.ResidentKey{
					{Class: model.BillingEntityKey, Name: "A", Value: 1}, {Class: model.CustomerKey, Name: "B", Value: 0.5},
				}
				vm.Owner = model.Owner{Customer: customers[1], BillingEntity: "gone"}
			}
			holder := rapid.SampledFrom(own).Draw(t, "holder")
			if !chance(t, "starting", 5) {
				vm.Holder, vm.Desired = holder.ID, model.Running
				if chance(t, "started by this release", 2) {
					vm.RanSize = model.Size{Memory: size(t, "ran memory", 20*units.GiB), VCPUs: rapid.IntRange(1, 8).Draw(t, "ran vcpus")}
				}
				vm.Ballooned = chance(t, "made smaller while it ran", 3)
				if chance(t, "just started", 4) {
					vm.StartedAt = noon
				}
			} else {
				vm.Operation = "start"
				l.reservations = append(
					l.reservations, model.Reservation{Node: holder.ID, VM: vm.ID, Name: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs},
				)
			}
			if !chance(t, "not shown", 5) {
				domain(holder, vm.ID, vm.Name, vm.Spec.Memory+units.Bytes(rapid.IntRange(-1, 1).Draw(t, "grown")))
			}
			if target := rapid.SampledFrom(own).Draw(t, "target"); target.ID != holder.ID && chance(t, "elsewhere too", 3) {
				if chance(t, "moving", 2) {
					vm.Operation = "migration"
					l.reservations = append(
						l.reservations, model.Reservation{Node: target.ID, VM: vm.ID, Name: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs},
					)
				}
				domain(target, vm.ID, vm.Name, vm.Spec.Memory)
			}
		}
		l.state.VMs = append(l.state.VMs, vm)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "foreign") {
		node := &l.state.Nodes[rapid.IntRange(0, len(l.state.Nodes)-1).Draw(t, "foreign node")]
		domain(
			node, fmt.Sprintf("foreign-%d", i), rapid.SampledFrom([]string{"batch", "", "true"}).Draw(t, "foreign name"),
			size(t, "foreign memory", 8*units.GiB),
		)
	}
}

// drawAround draws what a node has around its VMs.
func (l *live) drawAround(t *rapid.T, facts *model.NodeFacts) {
	if facts.PoolsKnown = !chance(t, "no pools", 8); facts.PoolsKnown {
		for _, name := range []string{"common", "fast"} {
			if chance(t, "has a pool", 2) {
				available := size(t, "pool available", 100*units.GiB)
				facts.Pools = append(
					facts.Pools, model.PoolFacts{Name: name, Active: !chance(t, "inactive", 5), Capacity: 100 * units.GiB, Available: available},
				)
			}
		}
	}
	if facts.NetworksKnown = !chance(t, "no networks", 8); facts.NetworksKnown && chance(t, "default network", 2) {
		facts.Networks, facts.Bridges = []string{"default"}, []string{"br0"}
	}
	if chance(t, "CPU models", 2) {
		facts.CPUModels, facts.HostCPU = []string{"Nehalem", "Westmere"}, "abc"
	}
}

// drawDisks gives VMs disks that are volumes, or are to become some, and networks.
func (l *live) drawDisks(t *rapid.T) {
	image := model.Resource{ID: "id-imagebase", Kind: model.KindImage, Name: "base"}
	image.Volume = &model.Volume{
		Pool: rapid.SampledFrom(l.pools).Draw(t, "image pool"), Name: model.VolumeName(image.ID, "qcow2"), Format: "qcow2",
		Capacity: 5 * units.GiB,
	}
	if image.Volume.Pool == "id-poolfast" {
		image.Volume.Nodes = []string{l.state.Nodes[0].ID}
	}
	l.state.Resources = append(l.state.Resources, image)
	for i := range l.state.VMs {
		vm := &l.state.VMs[i]
		if chance(t, "networked", 3) {
			vm.Spec.Networks = []string{rapid.SampledFrom([]string{"default", "bridge:br0"}).Draw(t, "network")}
		}
		if vm.Holder != "" && chance(t, "model", 3) {
			vm.CPU = "Nehalem"
		}
		holder, _ := l.state.Node(vm.Holder)
		if vm.Holder != "" && holder.Cluster != "other" || !chance(t, "disk", 2) {
			continue
		}
		disk := model.Resource{
			ID: "id-disk" + vm.Name, Kind: model.KindDisk, Name: vm.Name + "-root", Settings: map[string]string{"size": "10737418240"},
			Links: map[string]string{},
		}
		if chance(t, "copy of an image", 2) {
			disk.Links["image"] = image.ID
		}
		if vm.Holder != "" {
			pool := rapid.SampledFrom(l.pools).Draw(t, "pool")
			disk.Volume = &model.Volume{Pool: pool, Name: model.VolumeName(disk.ID, "qcow2"), Format: "qcow2", Capacity: 10 * units.GiB}
			if pool == "id-poolfast" {
				disk.Volume.Nodes = []string{vm.Holder}
			}
		}
		l.state.Resources, vm.Disks = append(l.state.Resources, disk), []string{disk.ID}
	}
}

// drawGroups draws groups of the default cluster, with soft rules, which never contradict each other.
func (l *live) drawGroups(t *rapid.T) {
	polarity := rapid.SampledFrom([]string{"positive", "negative", "disabled"})
	for i := range rapid.IntRange(0, 2).Draw(t, "groups") {
		r := model.Resource{
			ID: fmt.Sprintf("id-group%d", i), Kind: model.KindGroup, Name: fmt.Sprintf("group%d", i),
			Settings: map[string]string{model.SettingVMsRule: polarity.Draw(t, "vms rule"), model.SettingNodesRule: polarity.Draw(t, "nodes rule")},
			Lists:    map[string][]string{model.ListVMLabels: {"red"}, model.ListNodeLabels: {"left"}},
		}
		if chance(t, "broken", 2) {
			r.BrokenSince = noon.Add(-time.Duration(rapid.IntRange(1, 3600).Draw(t, "broken for")) * time.Second)
		}
		l.state.Resources = append(l.state.Resources, r)
	}
}

// drawPlans draws plans that have ended, newest first.
func (l *live) drawPlans(t *rapid.T) {
	ago := func(seconds int) time.Time { return noon.Add(-time.Duration(seconds) * time.Second) }
	for i := range rapid.IntRange(0, 3).Draw(t, "plans") {
		vm, from, to := l.state.VMs[0], l.state.Nodes[0], l.state.Nodes[1]
		plan := model.Plan{
			ID: fmt.Sprintf("plan%d", i), Kind: rapid.SampledFrom([]model.PlanKind{
				model.PlanBalance, model.PlanRepair, model.PlanDrain,
			}).Draw(t, "kind"),
			State: rapid.SampledFrom([]model.PlanState{model.PlanDone, model.PlanFailed}).Draw(t, "plan state"), Cluster: from.Cluster,
			CreatedAt: ago(1000 * (i + 2)), EndedAt: ago(1000*i + 500),
			Moves: []model.Move{{
				VM: vm.ID, VMName: vm.Name, Source: from.ID, SourceName: from.Name, Target: to.ID, TargetName: to.Name,
				Memory: vm.Spec.Memory, Result: model.MoveMoved,
			}},
		}
		switch plan.Kind {
		case model.PlanBalance:
			plan.Policy, plan.Unit, plan.Before, plan.Predicted = "even", "VMs", 2.5, 1.25
			if chance(t, "observed", 2) {
				plan.Observed, plan.ObservedAt = 1.5, ago(1000*i+100)
			}
		case model.PlanDrain:
			plan.Node, plan.NodeName = from.ID, from.Name
		default:
		}
		l.plans = append(l.plans, plan)
	}
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func cmpKeys(a, b model.Key) int {
	if a.Class != b.Class {
		return cmpText(string(a.Class), string(b.Class))
	}
	return cmpText(a.Name, b.Name)
}

// Law: what is asked of an exported scenario is decided as on the live cluster, to the last figure.
func TestAnExportedScenarioDecidesAsTheLiveClusterDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLive(t)
		if err := schema.Problems(estate.Check(l.state)); err != nil {
			t.Fatalf("the test's own cluster: %v", err)
		}
		view := l.view()
		seed := rapid.Uint64().Draw(t, "seed")
		data, err := format.Export(view, l.state, l.plans, seed)
		if err != nil {
			t.Fatal(err)
		}
		scenario, problems := Parse("live.yaml", data)
		if err := schema.Problems(problems); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if scenario.Seed != seed || !scenario.At.Equal(noon) {
			t.Fatalf("seed %d at %v", scenario.Seed, scenario.At)
		}
		w, _ := scenario.world()
		again := w.view()
		for _, name := range []string{model.DefaultCluster, "other"} {
			same(t, data, "columns of "+name, view.Columns(name), again.Columns(name))
			same(t, data, "fleet of "+name, fleetOf(t, &l.state, view, name, l.plans), fleetOf(t, &w.state, again, name, w.plans))
		}
		for i := range l.state.VMs {
			vm := l.state.VMs[i]
			copied, err := w.vm(vm.Name)
			if err != nil {
				t.Fatal(err)
			}
			purpose := placement.ForStart
			if vm.Holder != "" {
				purpose = placement.ForMigrate
			}
			decision := decide(t, view, l.state, vm, purpose, seed)
			same(t, data, "decision about "+vm.Name, decision, decide(t, again, w.state, *copied, purpose, seed))
			if vm.Holder == "" && w.idle(copied) == nil {
				same(t, data, "start of "+vm.Name, placement.Explain(decision), started(t, data, vm.Name, seed))
			}
		}
	})
}

// fleetOf is what the leader's loops see of a cluster beside the view. A scenario makes up who asked for a plan, the reasons and
// how its end was put in words, which move nothing.
func fleetOf(t *rapid.T, state *estate.State, view *view.View, name string, plans []model.Plan) any {
	fleet, err := estate.FleetOf(estate.Indexed(state), view, name, plans)
	if err != nil {
		t.Fatal(err)
	}
	recent := slices.Clone(fleet.Recent)
	for i := range recent {
		recent[i].Caller, recent[i].Reason, recent[i].Message, recent[i].UpdatedAt = "", "", "", time.Time{}
	}
	for i := range fleet.Groups {
		fleet.Groups[i].HeldSince = time.Time{} // is told, and moves nothing
	}
	for i := range fleet.VMs {
		if vm := &fleet.VMs[i]; vm.Busy != "" { // in whatever words, and however large it is
			vm.Busy, vm.Memory, vm.VCPUs = "busy", 0, 0
		}
	}
	return struct{ Groups, VMs, Recent any }{fleet.Groups, fleet.VMs, recent}
}

// started is the decision of a step that somebody adds to an exported scenario.
func started(t *rapid.T, data []byte, vm string, seed uint64) placement.Decision {
	step := fmt.Sprintf("steps: [{start: {vm: %s, seed: %d}}]", vm, seed)
	scenario, problems := Parse("live.yaml", bytes.Replace(data, []byte("steps: []"), []byte(step), 1))
	if err := schema.Problems(problems); err != nil {
		t.Fatal(err)
	}
	report, err := scenario.Run()
	if err != nil || len(report.Steps) != 1 {
		t.Fatalf("%v, %d steps", err, len(report.Steps))
	}
	return report.Steps[0].Decisions[0]
}

func decide(t *rapid.T, view *view.View, state estate.State, vm model.VM, purpose placement.Purpose, seed uint64) placement.Decision {
	search, _, err := estate.SearchOf(estate.Indexed(&state), view, vm, purpose)
	if err != nil {
		t.Fatal(err)
	}
	if holder := view.Node(vm.Holder); holder != nil && purpose.Moves() {
		size := vm.SizeOn(holder.Facts.Domain(vm.ID))
		for i := range search.Options {
			search.Options[i].Request.Memory, search.Options[i].Request.VCPUs = size.Memory, size.VCPUs
		}
	}
	return across.Place(view, search, seed)
}

func same(t *rapid.T, data []byte, what string, live, simulated any) {
	a, err := json.MarshalIndent(live, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(simulated, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Fatalf("%s (-live +simulated):\n%s\n%s", what, diff, data)
	}
}
