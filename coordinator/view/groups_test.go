package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/shared/units"
)

// groupsView is a cluster of three nodes with one VM on each: db is on its way from n1 to n2, virsh is moving cache from n3 to
// n1, and web is stopped. A second cluster has a VM that carries a label of the first one's groups.
func groupsView() *View {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	domain := func(id string, state model.DomainState) model.Domain {
		return model.Domain{UUID: id, Name: id, State: state, Memory: units.GiB, VCPUs: 2, Since: at.Add(-time.Hour)}
	}
	facts := map[string]model.NodeFacts{}
	for id, domains := range map[string][]model.Domain{
		"n1": {domain("cache", model.DomainPausedMigration), domain("db", model.DomainRunning)},
		"n2": {domain("old", model.DomainCrashed)},
		"n3": {domain("cache", model.DomainRunning)},
	} {
		available, load := 8*units.GiB, 1.0
		facts[id] = model.NodeFacts{
			Liveness: model.Up, Inventory: true, InventoryAt: at, Memory: 16 * units.GiB, CPUs: 4, DomainsKnown: true, Domains: domains,
			Telemetry: true, TelemetryAt: at, Available: &available, Load1: &load,
		}
	}
	spec := model.VMSpec{Memory: units.GiB, VCPUs: 2}
	return New(at, 1, Records{
		Clusters: []model.Resource{{Kind: model.KindCluster, ID: "c2", Name: "other"}},
		Nodes: []model.Node{
			{ID: "n1", Name: "alpha", Cluster: model.DefaultCluster, Labels: []string{"rack"}},
			{ID: "n2", Name: "beta", Cluster: model.DefaultCluster},
			{ID: "n3", Name: "gamma"},
			{ID: "n4", Name: "delta", Cluster: "other", Labels: []string{"rack"}},
		},
		VMs: []model.VM{
			{ID: "db", Name: "database", Holder: "n1", Spec: spec, Labels: []string{"data"}, StartedAt: at.Add(-time.Hour)},
			{ID: "cache", Name: "cache", Holder: "n3", Spec: spec, Migration: model.MigrateNever, StartedAt: at.Add(-time.Hour)},
			{ID: "old", Name: "old", Holder: "n3", Spec: spec, StartedAt: at.Add(-time.Hour)},
			{ID: "web", Name: "web", Spec: spec, Labels: []string{"data"}},
			{ID: "far", Name: "far", Holder: "n4", Spec: spec, Labels: []string{"data"}},
		},
		Reservations: []model.Reservation{{Node: "n2", VM: "db", Name: "database", Memory: units.GiB, VCPUs: 2, Operation: "o1"}},
		Groups: []model.Resource{
			{
				Kind: model.KindGroup, ID: "g2", Name: "storage", Links: map[string]string{model.LinkCluster: model.DefaultCluster},
				Members: map[string][]string{model.MembersVMs: {"cache", "far", "gone", "old", "web"}, model.MembersNodes: {"n2", "n4"}},
				Lists:   map[string][]string{model.ListVMLabels: {"data"}, model.ListNodeLabels: {"rack"}},
			},
			{
				Kind: model.KindGroup, ID: "g1", Name: "lonely", Links: map[string]string{model.LinkCluster: "c2"},
				Lists: map[string][]string{model.ListVMLabels: {"data"}},
			},
		},
	}, facts)
}

func TestGroupsOfAViewHaveTheMembersOfTheirCluster(t *testing.T) {
	view := groupsView()
	found := view.Groups(model.DefaultCluster)
	if len(found) != 1 || found[0].Name != "storage" {
		t.Fatalf("%+v", found)
	}
	if diff := cmp.Diff([]string{"cache", "db", "old", "web"}, found[0].VMs); diff != "" {
		t.Errorf("VMs: %s", diff)
	}
	if diff := cmp.Diff([]string{"n1", "n2"}, found[0].Nodes); diff != "" {
		t.Errorf("nodes: %s", diff)
	}
	if other := view.Groups("other"); len(other) != 1 || !cmp.Equal(other[0].VMs, []string{"far"}) {
		t.Errorf("the other cluster's: %+v", other)
	}
	if none := view.Groups("nowhere"); none != nil || view.Columns("nowhere").Groups != nil {
		t.Errorf("a cluster that is not there has %+v", none)
	}
	if again := view.Groups(model.DefaultCluster); &again[0] != &found[0] {
		t.Error("they are expanded again")
	}
}

// A VM that moves counts on both nodes, and leaves the one that it is on. A crashed domain is nobody.
func TestMembersCountWhereTheyAreAndWhereTheyGo(t *testing.T) {
	columns := groupsView().Columns(model.DefaultCluster)
	want := []Presence{
		{Node: 0, Count: 2, Leaving: 1, Fixed: 1, VMs: []string{"cache", "database"}},
		{Node: 1, Count: 1, VMs: []string{"database"}},
		{Node: 2, Count: 2, Leaving: 1, VMs: []string{"cache", "old"}},
	}
	if diff := cmp.Diff(want, columns.Presences(0, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:2:2], columns.Presences(0, []string{"cache", "old"})[1:]); diff != "" {
		t.Errorf("but for two (-want +got):\n%s", diff)
	}
	if !columns.Groups.Has(0, "web", nil) || columns.Groups.Has(0, "new", []string{"x"}) || !columns.Groups.Has(0, "new", []string{"data"}) {
		t.Error("membership by ID and label")
	}
}

// On columns of some nodes, members elsewhere count as one presence.
func TestMembersOnOtherNodesCountElsewhere(t *testing.T) {
	view := groupsView()
	alone := view.ColumnsOf(model.DefaultCluster, view.Nodes.Slice()[1:2])
	want := []Presence{
		{Node: Elsewhere, Name: "n1", Count: 4, Leaving: 2, Fixed: 1, VMs: []string{"cache", "database"}},
		{Node: 0, Count: 1, VMs: []string{"database"}},
	}
	if diff := cmp.Diff(want, alone.Presences(0, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroupsFollowWhatIsPlanned(t *testing.T) {
	view := groupsView()
	shared := view.Columns(model.DefaultCluster)
	planned := shared.Clone()
	old, _ := view.Node("n3").Holds("old")
	planned.Move(2, 1, old)
	planned.Charge(0, Allocation{VM: "new", Name: "newcomer", Memory: units.GiB, VCPUs: 1, Labels: []string{"data"}})
	planned.Groups.Liken("second", "web", nil)
	planned.Charge(0, Allocation{VM: "second", Memory: units.GiB, VCPUs: 1})
	want := []Presence{
		{Node: 0, Count: 4, Leaving: 1, Fixed: 1, VMs: []string{"cache", "database", "newcomer"}},
		{Node: 1, Count: 2, VMs: []string{"database", "old"}},
		{Node: 2, Count: 1, Leaving: 1, VMs: []string{"cache"}},
	}
	if diff := cmp.Diff(want, planned.Presences(0, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(groupsView().Columns(model.DefaultCluster).Presences(0, nil), shared.Presences(0, nil)); diff != "" {
		t.Errorf("the shared columns (-was +is):\n%s", diff)
	}
	without := view.Without("old", "n3").Columns(model.DefaultCluster)
	if got := without.Presences(0, nil)[2]; got.Count != 1 || without.Count.At(2) != 1 {
		t.Errorf("without the VM: %+v, %d on the node", got, without.Count.At(2))
	}
}

// Taking a VM off columns is what leaving it out of the view is.
func TestADischargeIsAWhatIf(t *testing.T) {
	cpu, resident, balloon := 0.5, units.GiB/2, units.GiB/4
	view := groupsView()
	domains := view.Nodes.At(0).Facts.Domains
	domains[1].CPU, domains[1].Resident, domains[1].Balloon = &cpu, &resident, &balloon
	view = New(view.At, 1, Records{
		Nodes: []model.Node{view.Nodes.At(0).Node},
		VMs: []model.VM{{
			ID: "db", Holder: "n1", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 2}, Owner: model.Owner{Customer: "c"},
			Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "G", Value: 1}},
		}},
	}, map[string]model.NodeFacts{"n1": view.Nodes.At(0).Facts})
	held, _ := view.Node("n1").Holds("db")
	if held.CPU != cpu || held.Frees != resident+units.GiB-balloon {
		t.Errorf("uses %v CPUs, frees %v", held.CPU, held.Frees)
	}
	discharged := view.Columns(model.DefaultCluster).Clone()
	discharged.Discharge(0, held)
	if diff := cmp.Diff(view.Without("db", "n1").Columns(model.DefaultCluster), discharged, sameColumns); diff != "" {
		t.Errorf("(-left out +discharged):\n%s", diff)
	}
}
