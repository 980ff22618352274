package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGroupOf(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		want     Group
	}{
		"nothing set": {nil, Group{Priority: 1, VMsRule: Rule{Polarity: Disabled}, NodesRule: Rule{Polarity: Disabled}}},
		"hard and soft": {
			map[string]string{
				SettingVMsRule: "negative", SettingVMsEnforcing: "true", SettingNodesRule: "positive", SettingPriority: "2.5", SettingUnbalanced: "true",
			},
			Group{Priority: 2.5, VMsRule: Rule{Negative, true}, NodesRule: Rule{Positive, false}, Unbalanced: true},
		},
		"a disabled rule keeps its flag": {
			map[string]string{SettingVMsRule: "disabled", SettingVMsEnforcing: "true"},
			Group{Priority: 1, VMsRule: Rule{Disabled, true}, NodesRule: Rule{Polarity: Disabled}},
		},
		"what cannot be read is as by default": {
			map[string]string{SettingVMsRule: "maybe", SettingPriority: "high"},
			Group{Priority: 1, VMsRule: Rule{Polarity: Disabled}, NodesRule: Rule{Polarity: Disabled}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			record := Resource{
				ID: "g1", Name: "web", Settings: c.settings, Members: map[string][]string{MembersVMs: {"v1"}, MembersNodes: {"n1"}},
				Lists: map[string][]string{ListVMLabels: {"web"}, ListNodeLabels: {"rack"}}, Revision: 7,
			}
			c.want.ID, c.want.Name, c.want.Cluster, c.want.Revision = "g1", "web", "default", 7
			c.want.VMs, c.want.Nodes, c.want.VMLabels, c.want.NodeLabels = []string{"v1"}, []string{"n1"}, []string{"web"}, []string{"rack"}
			got := GroupOf(&record, "default")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if hard, soft := got.VMsRule.Hard(), got.VMsRule.Soft(); hard && soft || (hard || soft) != got.VMsRule.Enabled() {
				t.Errorf("%+v is hard %v and soft %v", got.VMsRule, hard, soft)
			}
		})
	}
}

// Whoever asks a group about one VM or node gets the answer that all of them together get.
func TestExpandTakesInWhatHasVMAndHasNodeSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := func(what string, from ...string) []string {
			drawn := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID).Draw(t, what)
			slices.Sort(drawn)
			return drawn
		}
		var vms []VM
		var nodes []Node
		for i := range rapid.IntRange(0, 6).Draw(t, "VMs") {
			vms = append(vms, VM{ID: fmt.Sprint("v", i), Labels: words("VM's labels", "a", "b", "c")})
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			nodes = append(nodes, Node{ID: fmt.Sprint("n", i), Labels: words("node's labels", "a", "b", "c")})
		}
		vms = rapid.Permutation(vms).Draw(t, "order")
		group := Group{
			Name: "g", VMs: words("listed VMs", "v0", "v1", "v2", "v9"), Nodes: words("listed nodes", "n0", "n1", "n9"),
			VMLabels: words("VM labels", "a", "b"), NodeLabels: words("node labels", "a", "c"),
		}
		got := Expand([]Group{group, {Name: "a"}}, vms, nodes)
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
