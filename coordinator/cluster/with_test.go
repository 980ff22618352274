package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"berth/shared/units"
)

// A view with a reservation more is the view that would have been made with it, for everything that a decision reads.
func TestAViewWithAReservationIsTheOneMadeWithIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, vms, reservations, facts := estate(t)
		var groups []Resource
		if rapid.Bool().Draw(t, "groups") {
			groups = []Resource{
				{ID: "g1", Kind: KindGroup, Name: "apart", Members: map[string][]string{MembersVMs: {"fresh", "u1"}}},
				{ID: "g2", Kind: KindGroup, Name: "labelled", Lists: map[string][]string{ListVMLabels: {"web"}}},
			}
		}
		fresh := VM{
			ID: "fresh", Name: "fresh", Spec: VMSpec{Memory: units.GiB, VCPUs: 2}, Owner: Owner{Customer: "c"}, Labels: []string{"web"},
			Resident: []ResidentKey{{Class: CustomerKey, Name: "G", Value: 2}}, Migration: MigrateNever,
		}
		held := Reservation{Node: "n1", VM: fresh.ID, Name: fresh.Name, Memory: fresh.Spec.Memory, VCPUs: 2, Operation: "op"}
		records := Records{Nodes: nodes, VMs: vms, Reservations: reservations, Groups: groups}
		got, can := NewView(noon, 7, records, facts).With(fresh, held)
		if can != (len(nodes) > 1) {
			t.Fatalf("with %d nodes it can: %v", len(nodes), can)
		}
		if !can {
			return
		}
		records.VMs, records.Reservations = append(records.VMs, fresh), append(records.Reservations, held)
		want := NewView(noon, 7, records, facts)
		same := func(what string, got, want any) {
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Columns{}, Figures{}, Residents{}, Groups{}, Accounts{})); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
		}
		same("nodes", got.Nodes, want.Nodes)
		same("groups", got.Groups(DefaultCluster), want.Groups(DefaultCluster))
		same("customer's VMs", got.KeptVMs("c"), want.KeptVMs("c"))
		mine, theirs := got.Columns(DefaultCluster), want.Columns(DefaultCluster)
		same("columns", mine, theirs)
		for g := range want.Groups(DefaultCluster) {
			same("presences", mine.Presences(g, nil), theirs.Presences(g, nil))
		}
		same("accounts", mine.Accounts.VMs("c"), theirs.Accounts.VMs("c"))
		if again, twice := got.With(fresh, held); twice || again != got {
			t.Fatal("the VM is there already, and got another reservation")
		}
	})
}

func TestAViewThatWouldDifferElsewhereIsMadeAnew(t *testing.T) {
	view := NewView(noon, 7, Records{Nodes: []Node{{ID: "n1"}}, VMs: []VM{held("u1", "n1", units.GiB, 1, noon)}}, map[string]NodeFacts{"n1": healthy()})
	somewhere := Reservation{Node: "n1", VM: "u2"}
	for name, c := range map[string]struct {
		vm   VM
		held Reservation
		of   *View
	}{
		"it runs":               {vm: held("u1", "n1", units.GiB, 1, noon), held: Reservation{Node: "n1", VM: "u1"}, of: view},
		"it has a disk":         {vm: VM{ID: "u2", Disks: []string{"d"}}, held: somewhere, of: view},
		"a volume is made":      {vm: VM{ID: "u2"}, held: Reservation{Node: "n1", VM: "u2", Volumes: []VolumeOrder{{}}}, of: view},
		"there is no such node": {vm: VM{ID: "u2"}, held: Reservation{Node: "n9", VM: "u2"}, of: view},
		"a what-if":             {vm: VM{ID: "u2"}, held: somewhere, of: view.Without("u1", "n1")},
	} {
		if same, can := c.of.With(c.vm, c.held); can || same != c.of {
			t.Errorf("%s: a view came of it", name)
		}
	}
}
