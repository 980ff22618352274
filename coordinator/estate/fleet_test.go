package estate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/units"
)

// hold puts a VM on a node of the town, and shows it there as a domain.
func hold(now *State, facts map[string]model.NodeFacts, name, node string, change func(*model.VM, *model.Domain)) {
	run(name, node)(now)
	vm := &now.VMs[indexOf(now, name)]
	cpu := 0.5
	domain := model.Domain{UUID: vm.ID, Name: name, State: model.DomainRunning, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, CPU: &cpu}
	if change != nil {
		change(vm, &domain)
	}
	known := facts[node]
	known.Domains = append(known.Domains, domain)
	slices.SortFunc(known.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
	facts[node] = known
}

// moving is the town with its VMs on nodes, and what the agents report.
func moving(t *testing.T) (State, map[string]model.NodeFacts) {
	now := town(t)
	facts := make(map[string]model.NodeFacts)
	for _, node := range now.Nodes {
		facts[node.ID] = model.NodeFacts{Liveness: model.Up, Inventory: true, Memory: 64 * units.GiB, CPUs: 16, DomainsKnown: true}
	}
	hold(&now, facts, "db", "n0", nil)
	hold(&now, facts, "web-1", "n0", func(vm *model.VM, domain *model.Domain) {
		vm.MovedAt, domain.Memory, domain.CPU = epoch.Add(-time.Hour), 3*units.GiB, nil // it was made smaller for its next start
	})
	hold(&now, facts, "web-2", "n1", nil)
	hold(&now, facts, "far", "n2", nil)
	return now, facts
}

func fleetOf(t *testing.T, now State, facts map[string]model.NodeFacts, recent ...model.Plan) *balance.Fleet {
	t.Helper()
	x := Indexed(&now)
	view := view.New(epoch, 1, view.Records{Clusters: x.Resources(model.KindCluster), Nodes: now.Nodes, VMs: now.VMs}, facts)
	fleet, err := FleetOf(x, view, model.DefaultCluster, recent)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func TestFleetOf(t *testing.T) {
	now, facts := moving(t)
	fleet := fleetOf(t, now, facts, model.Plan{ID: "p1"})
	id := func(name string) string { vm, _ := now.VM(name); return vm.ID }
	want := []balance.VM{
		// Its group web-apart is left alone by balancing.
		{
			ID: id("db"), Name: "db", Node: "n0", NodeName: "hv1", Memory: units.GiB, VCPUs: 1, CPU: 0.5, CPUKnown: true,
			Migration: model.MigrateNever, Unbalanced: true,
		},
		{
			ID: id("web-1"), Name: "web-1", Node: "n0", NodeName: "hv1", Memory: 3 * units.GiB, VCPUs: 1, Unbalanced: true,
			MovedAt: epoch.Add(-time.Hour),
		},
		{
			ID: id("web-2"), Name: "web-2", Node: "n1", NodeName: "hv2", Memory: units.GiB, VCPUs: 1, CPU: 0.5, CPUKnown: true,
			Migration: model.MigrateManual, Unbalanced: true,
		},
	}
	slices.SortFunc(want, func(a, b balance.VM) int { return strings.Compare(a.ID, b.ID) })
	if diff := cmp.Diff(want, fleet.VMs); diff != "" {
		t.Error(diff)
	}
	if fleet.Cluster != model.DefaultCluster || !fleet.At.Equal(epoch) || len(fleet.Groups) != 3 || len(fleet.Recent) != 1 ||
		!fleet.DrainIgnoresVMRules || fleet.DisperseAccounts || fleet.Policy.Name != policies.Affinity || !fleet.Balancer.Nothing() ||
		fleet.Settings.Cooldown != model.DefaultCooldown {
		t.Errorf("%+v", fleet)
	}

	request, err := fleet.Ask(id("web-1"), placement.ForBalance)
	if err != nil || request.Current != "n0" || request.Memory != 3*units.GiB || request.Cluster != model.DefaultCluster ||
		!slices.Equal(request.Labels, []string{"web"}) || request.Purpose != placement.ForBalance {
		t.Errorf("%+v, %v", request, err)
	}
	if _, err := fleet.Ask(id("far"), placement.ForBalance); err == nil {
		t.Error("a VM of another cluster can be asked for")
	}
}

func TestFleetOfAPolicy(t *testing.T) {
	now, facts := moving(t)
	now = carriedOut(t, now, head+`
policies: [{name: spread, gate: off, balancer: even-vm-count, drain_ignores_vm_rules: false, disperse_accounts: true}]
clusters: [{name: default, policy: spread, balancing: automatic, cooldown: 2h}]
groups: [{name: web-apart}]
nodes: [{name: hv1}, {name: hv2, unbalanced: true}]
`, false)
	fleet := fleetOf(t, now, facts)
	if fleet.DrainIgnoresVMRules || !fleet.DisperseAccounts || fleet.Policy.Name != "spread" || fleet.Balancer.Balancer != "even-vm-count" ||
		fleet.Settings.Balancing != model.Automatic || fleet.Settings.Cooldown != 2*time.Hour {
		t.Errorf("%+v", fleet)
	}
	for _, vm := range fleet.VMs {
		if vm.Unbalanced != (vm.NodeName == "hv2") {
			t.Errorf("%s on %s is left alone: %v", vm.Name, vm.NodeName, vm.Unbalanced)
		}
	}
	x := Indexed(&now)
	view := view.New(epoch, 1, view.Records{Nodes: now.Nodes, VMs: now.VMs}, facts)
	if _, err := FleetOf(x, view, "nowhere", nil); !errors.Is(err, ErrDangling) {
		t.Errorf("a cluster that is not there: %v", err)
	}
}

// withVolume gives a VM a disk in a pool.
func withVolume(now *State, vm string, scope model.PoolScope) {
	now.Resources = append(now.Resources,
		model.Resource{ID: "pool-1", Kind: model.KindPool, Name: "fast", Settings: map[string]string{model.SettingScope: string(scope)}},
		model.Resource{ID: "disk-1", Kind: model.KindDisk, Name: "root", Volume: &model.Volume{Pool: "pool-1", Name: "root.qcow2"}},
		model.Resource{ID: "disk-2", Kind: model.KindDisk, Name: "data"})
	now.VMs[indexOf(now, vm)].Disks = []string{"disk-2", "disk-1"}
}

// A VM whose disks all nodes see moves, and who it belongs to is known, and whether its offer wants it with others.
func TestFleetKnowsWhoseAVMIs(t *testing.T) {
	now, facts := moving(t)
	withVolume(&now, "web-2", model.PoolShared)
	now.Resources = append(now.Resources,
		model.Resource{ID: "acme-1", Kind: model.KindCustomer, Name: "Acme"},
		model.Resource{
			ID: "packed", Kind: model.KindOffer, Name: "packed",
			Settings: map[string]string{model.SettingPlanner: "user-concentrated"},
		})
	now.VMs[indexOf(&now, "web-2")].Owner.Customer = "acme-1"
	now.VMs[indexOf(&now, "web-1")].Offer = "packed"
	for _, vm := range fleetOf(t, now, facts).VMs {
		if owned := vm.Owner == "Acme"; owned != (vm.Name == "web-2") || vm.Busy != "" || vm.Concentrated != (vm.Name == "web-1") {
			t.Errorf("%+v", vm)
		}
	}
}

// A drain finds in the VMs that it is given all that it would find in those of the whole cluster.
func TestADrainLooksAtNoMoreVMsThanItIsGiven(t *testing.T) {
	moves := 0
	rapid.Check(t, func(t *rapid.T) {
		now := State{Resources: []model.Resource{{ID: "east", Kind: model.KindCluster, Name: "east"}}}
		facts := make(map[string]model.NodeFacts)
		in := rapid.SampledFrom([]string{model.DefaultCluster, model.DefaultCluster, "east"})
		available, load := 48*units.GiB, 1.5
		for n := range rapid.IntRange(2, 6).Draw(t, "nodes") {
			id := fmt.Sprint("n", n)
			now.Nodes = append(now.Nodes, model.Node{ID: id, Name: "node-" + id, Cluster: in.Draw(t, "cluster")})
			facts[id] = model.NodeFacts{
				Liveness: model.Up, Inventory: true, InventoryAt: epoch, Memory: 64 * units.GiB, CPUs: 16, DomainsKnown: true,
				Telemetry: true, TelemetryAt: epoch, Available: &available, Load1: &load,
			}
		}
		node := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(0, len(now.Nodes)-1).Draw(t, "node")) })
		var reserved []model.Reservation
		for v := range rapid.IntRange(1, 12).Draw(t, "VMs") {
			id, on := fmt.Sprint("v", v), node.Draw(t, "on")
			vm := model.VM{ID: id, Name: "vm-" + id, Spec: model.VMSpec{Memory: units.Bytes(1+v%4) * units.GiB, VCPUs: 1}}
			switch rapid.IntRange(0, 5).Draw(t, "it is") {
			case 0: // stopped
			case 1:
				reserved = append(reserved, model.Reservation{VM: id, Name: vm.Name, Node: on, Memory: vm.Spec.Memory, VCPUs: 1})
				fallthrough
			default:
				vm.Holder = node.Draw(t, "holder")
				known := facts[vm.Holder]
				known.Domains = append(known.Domains, model.Domain{
					UUID: id, Name: vm.Name, State: model.DomainRunning, Memory: vm.Spec.Memory, VCPUs: 1,
				})
				slices.SortFunc(known.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
				facts[vm.Holder] = known
			}
			vm.Labels = [][]string{nil, {"web"}}[rapid.IntRange(0, 1).Draw(t, "labels")]
			now.VMs = append(now.VMs, vm)
		}
		polarity := rapid.SampledFrom([]model.Polarity{model.Disabled, model.Positive, model.Negative})
		for g := range rapid.IntRange(0, 3).Draw(t, "groups") {
			group := model.Resource{
				ID: fmt.Sprint("g", g), Kind: model.KindGroup, Name: fmt.Sprint("group-", g),
				Settings: map[string]string{
					model.SettingVMsRule: string(polarity.Draw(t, "VM rule")), model.SettingNodesRule: string(polarity.Draw(t, "node rule")),
					model.SettingVMsEnforcing: fmt.Sprint(rapid.Bool().Draw(t, "hard")), model.SettingNodesEnforcing: "true",
				},
				Members: map[string][]string{model.MembersNodes: {node.Draw(t, "member")}},
			}
			if rapid.Bool().Draw(t, "by label") {
				group.Lists = map[string][]string{model.ListVMLabels: {"web"}}
			} else {
				group.Members[model.MembersVMs] = []string{"v0", "v1", "v2"}
			}
			now.Resources = append(now.Resources, group)
		}
		x := Indexed(&now)
		seen := view.New(epoch, 1, view.Records{
			Clusters: x.Resources(model.KindCluster), Nodes: now.Nodes, VMs: now.VMs, Groups: x.Resources(model.KindGroup), Reservations: reserved,
		}, facts)
		drained := node.Draw(t, "drained")
		cluster := seen.Node(drained).Node.ClusterName()
		all, err := FleetOf(x, seen, cluster, nil)
		if err != nil {
			t.Fatal(err)
		}
		some, err := FleetForDrain(x, seen, cluster, drained, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Seed, some.Seed = func() uint64 { return 7 }, func() uint64 { return 7 }
		want, got := balance.Drain(all, drained, 2, units.GiB), balance.Drain(some, drained, 2, units.GiB)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-of all +of some):\n%s", diff)
		}
		moves += len(got.Plan.Moves)
	})
	if moves < 100 {
		t.Errorf("%d moves were planned: the test says little", moves)
	}
}

// Why a VM cannot move now is told in words.
func TestFleetSaysWhyAVMCannotMove(t *testing.T) {
	for want, change := range map[string]func(*State, map[string]model.NodeFacts){
		"": func(*State, map[string]model.NodeFacts) {},
		"an operation works on it": func(now *State, _ map[string]model.NodeFacts) {
			now.VMs[indexOf(now, "web-2")].Operation = "o1"
		},
		"hv2 is suspect: silent for 7 s": func(_ *State, facts map[string]model.NodeFacts) {
			known := facts["n1"]
			known.Liveness, known.LivenessReason = model.Suspect, "silent for 7 s"
			facts["n1"] = known
		},
		"hv2 does not show it": func(_ *State, facts map[string]model.NodeFacts) {
			known := facts["n1"]
			known.Domains = nil
			facts["n1"] = known
		},
		"it is paused on hv2 (user)": func(_ *State, facts map[string]model.NodeFacts) {
			facts["n1"].Domains[0].State, facts["n1"].Domains[0].Reason = model.DomainPaused, "user"
		},
		"its disk is on hv2: nothing moves in a cluster with local storage": func(now *State, _ map[string]model.NodeFacts) {
			edit(now, model.KindCluster, model.DefaultCluster, func(r *model.Resource) {
				r.Settings = map[string]string{model.SettingStorage: "local"}
			})
		},
		"its disk root is in the local pool fast of hv2": func(now *State, _ map[string]model.NodeFacts) {
			withVolume(now, "web-2", model.PoolLocal)
		},
	} {
		now, facts := moving(t)
		change(&now, facts)
		fleet := fleetOf(t, now, facts)
		at := slices.IndexFunc(fleet.VMs, func(vm balance.VM) bool { return vm.Name == "web-2" })
		if got := fleet.VMs[at].Busy; got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	now, facts := moving(t)
	known := facts["n1"]
	known.Domains, known.DomainsKnown = nil, false
	facts["n1"] = known
	for _, vm := range fleetOf(t, now, facts).VMs {
		if vm.Busy != "" {
			t.Errorf("%s: %s, want the source's agent to look", vm.Name, vm.Busy)
		}
	}
}
