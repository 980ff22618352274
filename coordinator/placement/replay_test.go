package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

// through is the decision after a way through the log.
func through(t interface{ Fatal(...any) }, d Decision) Decision {
	encoded, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back Decision
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestReplayComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		d := through(t, Place(s.view(), request, s.policy(), seed))
		again, err := Replay(d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("(-was +is):\n%s", diff)
		}
		if diff := cmp.Diff(Explain(d), Explain(d.Clone())); diff != "" {
			t.Fatalf("the explanation of a copy (-was +is):\n%s", diff)
		}
	})
}

// What is left out of the record of a large cluster has no part in the outcome.
func TestReplayOnTheKeptNodesComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view := crowd(MaxKept+rapid.IntRange(1, 200).Draw(t, "more"), drawCrowdGroups(t)...)
		some := func(label string) string {
			return view.Nodes.At(rapid.IntRange(0, view.Nodes.Len()-1).Draw(t, label)).Node.ID
		}
		request := Request{
			Purpose: ForMigrate, VM: some("vm") + "-1", VMName: "vm", VCPUs: 2, SystemKeys: specials(),
			Memory: units.Bytes(rapid.IntRange(1, 600).Draw(t, "memory")) * units.GiB,
		}
		request.Current = strings.TrimSuffix(request.VM, "-1")
		if rapid.Bool().Draw(t, "if better") {
			request.IfBetter = rapid.Float64Range(0, 100).Draw(t, "gain")
		}
		request.CustomerKeys = []key.Weighted{{
			Name: "G", Value: float64(rapid.IntRange(0, 9).Draw(t, "group")), Weight: rapid.Float64Range(-100, 100).Draw(t, "weight"),
			Class: model.CustomerKey,
		}}
		policy, _ := policies.Builtin(rapid.SampledFrom(policies.Builtins()).Draw(t, "policy"), model.DefaultSettings())
		policy.Selector = rapid.SampledFrom([]string{SelectRank, "percentage-dynamic", "sum"}).Draw(t, "selector")
		if len(policy.Weighers) > 0 && rapid.Bool().Draw(t, "without customer keys") {
			request.CustomerKeys = nil
		}
		if rapid.Bool().Draw(t, "prefer") {
			request.Preferred = []string{some("preferred")}
		}
		d := through(t, Place(view, request, policy, rapid.Uint64().Draw(t, "seed")))
		if again, err := Replay(d); err != nil {
			t.Fatalf("%v\n%s\n%s", err, Text(d), Text(again))
		}
	})
}

// drawCrowdGroups are groups of VMs and nodes of a crowd, the VM to be placed among them or not.
func drawCrowdGroups(t *rapid.T) []model.Resource {
	var groups []model.Resource
	some := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("n%06d", rapid.IntRange(0, MaxKept).Draw(t, "node")) })
	vm := rapid.Custom(func(t *rapid.T) string { return some.Draw(t, "node") + "-1" })
	polarity := rapid.SampledFrom([]model.Polarity{model.Disabled, model.Positive, model.Negative})
	for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
		group := model.Resource{
			Kind: model.KindGroup, ID: fmt.Sprint("g", i), Name: fmt.Sprint("group-", i),
			Settings: map[string]string{
				model.SettingVMsRule: string(polarity.Draw(t, "VM rule")), model.SettingNodesRule: string(polarity.Draw(t, "node rule")),
				model.SettingVMsEnforcing:   fmt.Sprint(rapid.Bool().Draw(t, "hard VM rule")),
				model.SettingNodesEnforcing: fmt.Sprint(rapid.Bool().Draw(t, "hard node rule")),
			},
			Members: map[string][]string{
				model.MembersVMs:   slices.Sorted(slices.Values(rapid.SliceOfNDistinct(vm, 1, 60, rapid.ID).Draw(t, "VMs"))),
				model.MembersNodes: slices.Sorted(slices.Values(rapid.SliceOfNDistinct(some, 0, 60, rapid.ID).Draw(t, "nodes"))),
			},
		}
		groups = append(groups, group)
	}
	return groups
}

func TestReplayNamesWhatDiffers(t *testing.T) {
	s := parseScenario(t, "node node1 memory=16G cpus=4 available=15G load=0\nstart new memory=1G vcpus=1")
	d := Place(s.view(), s.asked[0].request, s.policy(), 1)
	d.Winner, d.Margin = "node9", 3
	_, err := Replay(d)
	var differs *DiffersError
	if !errors.As(err, &differs) || !errors.Is(err, ErrDiffers) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]string{"winner is node1, was node9", "margin is 0, was 3"}, differs.Differences); diff != "" {
		t.Error(diff)
	}
	if _, err := Replay(Decision{ID: "of 0.1"}); !errors.Is(err, ErrNotReplayable) {
		t.Errorf("got %v", err)
	}
	old := Decision{ID: "of 0.1", Nodes: []NodeResult{{Name: "node1"}}, Order: "first-fit"}
	if diff := cmp.Diff(old, Explain(old)); diff != "" {
		t.Errorf("an old decision is changed: %s", diff)
	}
}
