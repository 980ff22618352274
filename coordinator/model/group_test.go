package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupOf(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		want     Group
	}{
		"nothing set": {nil, Group{Priority: 1, VMsRule: Rule{Polarity: Disabled}, NodesRule: Rule{Polarity: Disabled}}},
		"hard and soft": {
			map[string]string{
				SettingVMsRule: "negative", SettingVMsEnforcing: "true", SettingNodesRule: "positive", SettingPriority: "2.5",
				SettingUnbalanced: "true",
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
