package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/shared/units"
)

// A view with a reservation more is the view that would have been made with it, for everything that a decision reads.
func TestAViewWithAReservationIsTheOneMadeWithIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, vms, reservations, facts := estate(t)
		var groups []model.Resource
		if rapid.Bool().Draw(t, "groups") {
			groups = []model.Resource{
				{ID: "g1", Kind: model.KindGroup, Name: "apart", Members: map[string][]string{model.MembersVMs: {"fresh", "u1"}}},
				{ID: "g2", Kind: model.KindGroup, Name: "labelled", Lists: map[string][]string{model.ListVMLabels: {"web"}}},
			}
		}
		vcpus := rapid.SampledFrom([]int{2, 12, 500}).Draw(t, "vCPUs")
		fresh := model.VM{
			ID: "fresh", Name: "fresh", Spec: model.VMSpec{Memory: units.GiB, VCPUs: vcpus}, Owner: model.Owner{Customer: "c"},
			Labels:   []string{"web"},
			Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "G", Value: 2}}, Migration: model.MigrateNever,
		}
		held := model.Reservation{Node: "n1", VM: fresh.ID, Name: fresh.Name, Memory: fresh.Spec.Memory, VCPUs: fresh.Spec.VCPUs, Operation: "op"}
		records := Records{Nodes: nodes, VMs: vms, Reservations: reservations, Groups: groups}
		before := New(noon, 7, records, facts)
		if rapid.Bool().Draw(t, "asked") {
			before.Columns(model.DefaultCluster) // those of the view with the VM are made of them then
		}
		got, can := before.With(fresh, held)
		if can != (len(nodes) > 1) {
			t.Fatalf("with %d nodes it can: %v", len(nodes), can)
		}
		if !can {
			return
		}
		records.VMs, records.Reservations = append(records.VMs, fresh), append(records.Reservations, held)
		want := New(noon, 7, records, facts)
		same := func(what string, got, want any) {
			if diff := cmp.Diff(
				want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(NodeView{}, Columns{}, Figures{}, Residents{}, Groups{}, Accounts{}),
			); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
		}
		same("nodes", got.Nodes.Slice(), want.Nodes.Slice())
		for _, view := range []*View{got, want} {
			for _, node := range view.Nodes.All() {
				if lines := Crowding([]Crowd{node.Crowd()}); len(lines) > 0 && !node.Crowds() {
					t.Fatalf("node %s does not crowd: %q", node.Node.ID, lines)
				}
			}
		}
		same("groups", got.Groups(model.DefaultCluster), want.Groups(model.DefaultCluster))
		same("customer's VMs", got.KeptVMs("c"), want.KeptVMs("c"))
		mine, theirs := got.Columns(model.DefaultCluster), want.Columns(model.DefaultCluster)
		same("columns", mine, theirs)
		for g := range want.Groups(model.DefaultCluster) {
			same("presences", mine.Presences(g, nil), theirs.Presences(g, nil))
		}
		same("accounts", mine.Accounts.VMs("c"), theirs.Accounts.VMs("c"))
		if again, twice := got.With(fresh, held); twice || again != got {
			t.Fatal("the VM is there already, and got another reservation")
		}
	})
}

func TestAViewThatWouldDifferElsewhereIsMadeAnew(t *testing.T) {
	view := New(
		noon, 7, Records{Nodes: []model.Node{{ID: "n1"}}, VMs: []model.VM{held("u1", "n1", units.GiB, 1, noon)}},
		map[string]model.NodeFacts{"n1": healthy()},
	)
	somewhere := model.Reservation{Node: "n1", VM: "u2"}
	for name, c := range map[string]struct {
		vm   model.VM
		held model.Reservation
		of   *View
	}{
		"it runs":       {vm: held("u1", "n1", units.GiB, 1, noon), held: model.Reservation{Node: "n1", VM: "u1"}, of: view},
		"it has a disk": {vm: model.VM{ID: "u2", Disks: []string{"d"}}, held: somewhere, of: view},
		"a volume is made": {
			vm: model.VM{ID: "u2"}, held: model.Reservation{Node: "n1", VM: "u2", Volumes: []model.VolumeOrder{{}}}, of: view,
		},
		"there is no such node": {vm: model.VM{ID: "u2"}, held: model.Reservation{Node: "n9", VM: "u2"}, of: view},
		"a what-if":             {vm: model.VM{ID: "u2"}, held: somewhere, of: view.Without("u1", "n1")},
	} {
		if same, can := c.of.With(c.vm, c.held); can || same != c.of {
			t.Errorf("%s: a view came of it", name)
		}
	}
}
