package estate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/placement"
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
		!fleet.DrainIgnoresVMRules || fleet.DisperseAccounts || fleet.Policy.Name != placement.PolicyAffinity || !fleet.Balancer.Nothing() ||
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
