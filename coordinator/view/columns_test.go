package view

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/coordinator/model"
	"berth/shared/units"
)

// columnsView is a view of two nodes of the default cluster and one of another.
func columnsView() *View {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	known := func(liveness model.Liveness) model.NodeFacts {
		available, load := 6*units.GiB, 2.0
		return model.NodeFacts{
			Liveness: liveness, Inventory: true, InventoryAt: at, Memory: 16 * units.GiB, CPUs: 4, DomainsKnown: true,
			Telemetry: true, TelemetryAt: at, Available: &available, Load1: &load,
		}
	}
	records := Records{
		Clusters: []model.Resource{{
			Kind: model.KindCluster, ID: "c1", Name: model.DefaultCluster,
			NodeKeys: []model.NodeKey{{Name: "_SSD"}, {Name: "RACK", Default: 3, Sticky: true, Weight: 20}},
		}},
		Nodes: []model.Node{
			{
				ID: "n2", Name: "beta", Cluster: model.DefaultCluster, Keys: map[string]float64{"RACK": 4}, Maintenance: true,
				MaintenanceReason: "fans",
			},
			{ID: "n1", Name: "alpha", Cluster: model.DefaultCluster},
			{ID: "n3", Name: "gamma", Cluster: "other"},
		},
		VMs: []model.VM{
			{
				ID: "v1", Name: "web", Holder: "n1", Spec: model.VMSpec{Memory: 4 * units.GiB, VCPUs: 8}, StartedAt: at.Add(-time.Hour),
				Owner: model.Owner{Customer: "c"}, Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "G", Value: 1}},
			},
		},
	}
	return New(at, 1, records, map[string]model.NodeFacts{"n1": known(model.Up), "n2": known(model.Suspect), "n3": known(model.Up)})
}

func TestColumnsAreTheNodesOfOneCluster(t *testing.T) {
	c := columnsView().Columns(model.DefaultCluster)
	if diff := cmp.Diff([]string{"n1", "n2"}, c.IDs); diff != "" {
		t.Fatal(diff)
	}
	if c.Standing[0] != Stands || c.Reason(0) != "" || c.Standing[1] != StandsDownInMaintenance || c.Reason(1) != "fans" {
		t.Errorf("standing %v, reasons %q", c.Standing, c.Reasons)
	}
	want := []NodeKeyColumn{
		{Name: "_SSD", Values: ColumnOf[float64](0, 0)}, {Name: "RACK", Values: ColumnOf[float64](3, 4), Sticky: true, Weight: 20},
	}
	if diff := cmp.Diff(want, c.NodeKeys); diff != "" {
		t.Error(diff)
	}
	if c.RAM.At(0) != 0.25 || c.CPU.At(0) != 8.0/32 || c.Busy.At(0) != 0.5 || c.Room.At(0) != 5*units.GiB || c.Room.At(1) != math.MinInt64 {
		t.Errorf("derived %v %v %v %v", c.RAM, c.CPU, c.Busy, c.Room)
	}
	if other := columnsView().Columns("other"); other.Len() != 1 || other.NodeKeys != nil {
		t.Errorf("the other cluster has %v with keys %v", other.IDs, other.NodeKeys)
	}
	if at, found := c.Index("n2"); at != 1 || !found {
		t.Errorf("n2 is at %d (%t)", at, found)
	}
	if _, found := c.Index("n9"); found {
		t.Error("n9 is found")
	}
}

func TestFiguresGoThroughALogAndCanBeCut(t *testing.T) {
	c := columnsView().Columns(model.DefaultCluster)
	encoded, err := json.Marshal(c.Figures)
	if err != nil {
		t.Fatal(err)
	}
	back := &Columns{}
	if err := json.Unmarshal(encoded, &back.Figures); err != nil {
		t.Fatal(err)
	}
	back.Derive()
	back.Residents, back.AtWork, back.Accounts = c.Residents, c.AtWork, c.Accounts // no figures: what charges need
	if diff := cmp.Diff(c, back, sameColumns); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	if diff := cmp.Diff(c.Figures, c.Select([]int{0, 1})); diff != "" {
		t.Errorf("all of them (-was +is):\n%s", diff)
	}
	one := c.Select([]int{1})
	if one.Len() != 1 || one.Names[0] != "beta" || one.Reason(0) != "fans" || one.NodeKeys[1].Values.At(0) != 4 {
		t.Errorf("%+v", one)
	}
	one.NodeKeys[1].Values.Set(0, 9)
	if c.NodeKeys[1].Values.At(1) != 4 {
		t.Error("what is cut out shares memory with the rest")
	}
}

// sameResidents compares what is met by keys G.
var sameResidents = cmp.Comparer(func(a, b *Residents) bool {
	for _, list := range []residentList{
		{class: model.CustomerKey, of: model.KindCustomer, owner: "c", name: "G"}, {of: model.KindCluster, name: "G"},
	} {
		if !cmp.Equal(a.list(list), b.list(list), cmpopts.EquateEmpty()) {
			return false
		}
	}
	return true
})

// sameColumns compares everything that placement reads.
var sameColumns = cmp.Options{
	sameResidents, cmpopts.IgnoreUnexported(Columns{}),
	cmp.Comparer(func(a, b *Accounts) bool { return cmp.Equal(a.VMs("c"), b.VMs("c")) }),
}

func TestAChargeIsFeltOnTheCopyAlone(t *testing.T) {
	c := columnsView().Columns(model.DefaultCluster)
	was := columnsView().Columns(model.DefaultCluster)
	copied := c.Clone()
	copied.Charge(0, Allocation{
		Memory: 4 * units.GiB, VCPUs: 8, Owner: model.Owner{Customer: "c"}, Resident: []model.ResidentKey{{
			Class: model.CustomerKey, Name: "G", Value: 1,
		}},
	})
	if copied.RAM.At(0) != 0.5 || copied.CPU.At(0) != 0.5 || copied.Room.At(0) != units.GiB {
		t.Errorf("charged: %v %v %v", copied.RAM.At(0), copied.CPU.At(0), copied.Room.At(0))
	}
	if diff := cmp.Diff(was, c, sameColumns); diff != "" {
		t.Errorf("the original (-was +is):\n%s", diff)
	}
	if got := met(copied, model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c"}); got != 2 {
		t.Errorf("%d VMs are met, want 2", got)
	}
	bare := &Columns{Figures: c.Select([]int{0})}
	bare.Derive()
	bare.Charge(0, Allocation{Memory: units.GiB, VCPUs: 1, Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "G", Value: 1}}})
	if got := met(bare, model.ScopeCustomer, model.CustomerKey, model.Owner{}); got != 1 {
		t.Errorf("%d VMs are met on columns that had none, want 1", got)
	}
}

// Columns are gathered once a view, and those of a what-if are those of its view but for the VM that is gone.
func TestColumnsAreGatheredOnce(t *testing.T) {
	view := columnsView()
	c := view.Columns(model.DefaultCluster)
	if view.Columns(model.DefaultCluster) != c {
		t.Error("they are gathered again")
	}
	if none := view.Columns("nowhere"); none.Len() != 0 || view.gathered.columns["nowhere"] != nil {
		t.Errorf("a cluster that is not there has %v", none.IDs)
	}
	whatIf := view.Without("v1", "n1")
	got, want := whatIf.Columns(model.DefaultCluster), whatIf.ColumnsOf(model.DefaultCluster, whatIf.Nodes.Slice()[:2])
	if diff := cmp.Diff(want, got, sameColumns); diff != "" {
		t.Errorf("without the VM (-gathered +taken over):\n%s", diff)
	}
	if diff := cmp.Diff(view.Columns("other"), whatIf.Columns("other"), sameColumns); diff != "" {
		t.Errorf("a cluster that the VM is not of (-was +without):\n%s", diff)
	}
	if got.Used.At(0) != 0 || c.Used.At(0) != 4*units.GiB {
		t.Errorf("%v used without the VM, %v with it", got.Used.At(0), c.Used.At(0))
	}
	here, gone := met(c, model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c"}), met(
		got, model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c"},
	)
	if here != 1 || gone != 0 {
		t.Errorf("%d VMs are met, and %d without it", here, gone)
	}
	charged := got.Clone()
	charged.Charge(1, Allocation{
		Memory: units.GiB, VCPUs: 1, Owner: model.Owner{Customer: "c"}, Resident: []model.ResidentKey{{
			Class: model.CustomerKey, Name: "G", Value: 1,
		}},
	})
	if here, there := met(
		charged, model.ScopeCluster, model.CustomerKey, model.Owner{},
	), met(c, model.ScopeCluster, model.CustomerKey, model.Owner{}); here != 1 || there != 1 {
		t.Errorf("%d VMs are met on the charged copy, %d on the view's columns", here, there)
	}
}

// met counts the VMs that a key G of value 1.25 meets.
func met(c *Columns, scope model.KeyScope, class model.KeyClass, owner model.Owner) int {
	count := 0
	c.Residents.Match(scope, class, owner, "G", 1.25, func(p Posting) {
		for _, n := range p.Counts {
			count += int(n)
		}
	})
	return count
}

// Who meets whom: the same customer, and for billing-entity keys the same billing entity; with ScopeCluster everybody.
func TestResidentsAreMetByTheirOwn(t *testing.T) {
	c := &Columns{Residents: NewResidents()}
	add := func(customer, billing string, class model.KeyClass, value float64) {
		c.Residents.Add(0, model.Owner{Customer: customer, BillingEntity: billing}, []model.ResidentKey{{Class: class, Name: "G", Value: value}})
	}
	add("c1", "b1", model.CustomerKey, 1)
	add("c1", "b1", model.BillingEntityKey, 1)
	add("c2", "b1", model.CustomerKey, 1)
	add("c2", "b1", model.BillingEntityKey, 1)
	add("c3", "b2", model.BillingEntityKey, 1)
	add("c1", "b1", model.CustomerKey, 2.25) // a whole unit away
	add("c1", "b1", model.CustomerKey, 0.25) // likewise
	for _, one := range []struct {
		scope model.KeyScope
		class model.KeyClass
		owner model.Owner
		want  int
	}{
		{model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c1", BillingEntity: "b1"}, 2},
		{model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c2", BillingEntity: "b1"}, 2},
		{model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c3", BillingEntity: "b2"}, 1},
		{model.ScopeCustomer, model.CustomerKey, model.Owner{Customer: "c9", BillingEntity: "b1"}, 0},
		// c1's customer key, and the two of b1
		{model.ScopeCustomer, model.BillingEntityKey, model.Owner{Customer: "c1", BillingEntity: "b1"}, 3},
		{model.ScopeCustomer, model.BillingEntityKey, model.Owner{Customer: "c9", BillingEntity: "b2"}, 1},
		{model.ScopeCluster, model.CustomerKey, model.Owner{Customer: "c9", BillingEntity: "b9"}, 5},
	} {
		if got := met(c, one.scope, one.class, one.owner); got != one.want {
			t.Errorf("%v: %d are met, want %d", one, got, one.want)
		}
	}
}

// A placement trusts telemetry for as long as the slowest of its nodes takes to miss three samples; a decision keeps that.
func TestColumnsKnowHowOldTelemetryMayBe(t *testing.T) {
	slow := healthy()
	slow.Pace = model.PaceOf(1000)
	nodes := []model.Node{{ID: "n1", Name: "n1"}, {ID: "n2", Name: "n2"}}
	for oldest, facts := range map[time.Duration]map[string]model.NodeFacts{
		model.SuspectAfter: {"n1": healthy(), "n2": healthy()}, 30 * time.Second: {"n1": healthy(), "n2": slow},
	} {
		columns := New(noon, 1, Records{Nodes: nodes}, facts).Columns(model.DefaultCluster)
		kept := columns.Select([]int{0})
		if columns.OldestTelemetry() != oldest || kept.OldestTelemetry() != oldest {
			t.Errorf("%s, kept %s, want %s", columns.OldestTelemetry(), kept.OldestTelemetry(), oldest)
		}
		if (columns.Oldest == 0) != (oldest == model.SuspectAfter) {
			t.Errorf("a small fleet's decisions keep %s", columns.Oldest)
		}
	}
}
