package view

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
)

// Asking a group about one VM or node gives the same answer as asking about all of them together.
func TestExpandTakesInWhatHasVMAndHasNodeSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := func(what string, from ...string) []string {
			drawn := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID).Draw(t, what)
			slices.Sort(drawn)
			return drawn
		}
		var vms []model.VM
		var nodes []model.Node
		for i := range rapid.IntRange(0, 6).Draw(t, "VMs") {
			vms = append(vms, model.VM{ID: fmt.Sprint("v", i), Labels: words("VM's labels", "a", "b", "c")})
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			nodes = append(nodes, model.Node{ID: fmt.Sprint("n", i), Labels: words("node's labels", "a", "b", "c")})
		}
		vms = rapid.Permutation(vms).Draw(t, "order")
		group := model.Group{
			Name: "g", VMs: words("listed VMs", "v0", "v1", "v2", "v9"), Nodes: words("listed nodes", "n0", "n1", "n9"),
			VMLabels: words("VM labels", "a", "b"), NodeLabels: words("node labels", "a", "c"),
		}
		got := Expand([]model.Group{group, {Name: "a"}}, vms, nodes)
		if got[0].Name != "a" || got[0].VMs != nil || got[0].Nodes != nil {
			t.Fatalf("the first by name is %+v", got[0])
		}
		want := group
		want.VMs, want.Nodes = nil, nil
		for i := range vms {
			if group.HasVM(&vms[i]) {
				want.VMs = append(want.VMs, vms[i].ID)
			}
		}
		for i := range nodes {
			if group.HasNode(&nodes[i]) {
				want.Nodes = append(want.Nodes, nodes[i].ID)
			}
		}
		slices.Sort(want.VMs)
		slices.Sort(want.Nodes)
		if diff := cmp.Diff(want, got[1]); diff != "" {
			t.Fatal(diff)
		}
	})
}
