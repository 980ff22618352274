package estate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// declaredIn is one entry of a document, as whoever reads YAML has it.
func declaredIn(t *testing.T, text, section, name string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	entries, _ := doc[section].([]any)
	at := slices.IndexFunc(entries, func(one any) bool { return one.(map[string]any)["name"] == name })
	if at < 0 {
		t.Fatalf("no %s of %s in\n%s", name, section, text)
	}
	return entries[at].(map[string]any)
}

// What was declared by the names of the designs is exported by them, and what was declared by ours by ours. Both are the same estate.
func TestExportHasTheNamesThatWereDeclared(t *testing.T) {
	for name, c := range map[string]struct{ section, entry string }{
		"names of fields": {"groups", "{name: g, hosts_rule: negative, hosts_enforcing: true, hosts: [hv1], host_labels: [rack-1]}"},
		"rules as fields": {
			"groups",
			"{name: g, vms_rule: {enabled: true, positive: false, enforcing: true}, hosts_rule: {positive: true}, hosts: [hv1]}",
		},
		"fields of our rule":    {"groups", "{name: g, nodes_rule: {positive: true, enforcing: false}, nodes: [hv1]}"},
		"not enabled":           {"groups", "{name: g, vms_rule: {enabled: false, positive: true, enforcing: true}}"},
		"without its direction": {"groups", "{name: g, hosts_rule: {enabled: false}}"},
		"half and half": {
			"groups", "{name: g, hosts_rule: positive, nodes: [hv1], vms_rule: negative, vms_enforcing: true}",
		},
		"ours":               {"groups", "{name: g, nodes_rule: positive, nodes_enforcing: true, nodes: [hv1], node_labels: [rack-1]}"},
		"a policy's planner": {"policies", "{name: g, planner: UserConcentratedPodPlanner}"},
		"a zone's planner":   {"zones", "{name: g, planner: FirstFitPlanner}"},
		"an offer's planner": {"offers", "{name: g, for: vm, planner: UserDispersingPlanner}"},
		"our planner":        {"offers", "{name: g, for: vm, planner: user-dispersing}"},
	} {
		t.Run(name, func(t *testing.T) {
			text := head + c.section + ": [" + c.entry + "]\n"
			now := carriedOut(t, town(t), text, false)
			exported := export(t, now, false)
			if diff := cmp.Diff(declaredIn(t, text, c.section, "g"), declaredIn(t, exported, c.section, "g")); diff != "" {
				t.Error(diff)
			}
			for _, again := range []string{text, exported} {
				if plan, problems := Diff(now, read(t, again), false); len(plan.Changes)+len(problems) > 0 {
					t.Errorf("applied again it changes %+v\n%s", plan.Changes, lines(problems))
				}
			}
		})
	}
}

// The same declared by other names is another document: the newer one is exported, and nothing else changes.
func TestADocumentByOtherNamesIsExportedByThose(t *testing.T) {
	const theirs = head + "groups: [{name: g, hosts_rule: {positive: true, enforcing: true}, hosts: [hv1]}]\n"
	const ours = head + "groups: [{name: g, nodes_rule: positive, nodes_enforcing: true, nodes: [hv1]}]\n"
	now := carriedOut(t, town(t), theirs, false)
	plan, problems := Diff(now, read(t, ours), false)
	if len(problems) > 0 || len(plan.Changes) != 1 || len(plan.Changes[0].Fields) != 1 {
		t.Fatalf("changes %+v\n%s", plan.Changes, lines(problems))
	}
	const says = "spelled: hosts, hosts_rule positive enforcing → (none) (as 'berth export' writes it)"
	if got := plan.Changes[0].Fields[0].String(); got != says {
		t.Errorf("told %q, want %q", got, says)
	}
	after := plan.Apply(now)
	if diff := cmp.Diff(declaredIn(t, ours, "groups", "g"), declaredIn(t, export(t, after, false), "groups", "g")); diff != "" {
		t.Error(diff)
	}
	back := carriedOut(t, after, theirs, false)
	if diff := cmp.Diff(declaredIn(t, theirs, "groups", "g"), declaredIn(t, export(t, back, false), "groups", "g")); diff != "" {
		t.Error(diff)
	}
}

// What was changed since is exported as it is now, by the names of the document where it still has them.
func TestWhatWasChangedSinceIsExportedAsItIs(t *testing.T) {
	const declared = head + "groups: [{name: g, hosts_rule: {enabled: true, positive: true}, vms_rule: {enabled: false, positive: true}, " +
		"hosts: [hv1]}]\noffers: [{name: g, for: vm, planner: UserDispersingPlanner}]\n"
	for name, c := range map[string]struct {
		kind    model.Kind
		wanted  Wanted
		section string
		entry   string
	}{
		"a flag": {
			model.KindGroup,
			Wanted{Settings: map[string]string{model.SettingNodesEnforcing: "true"}},
			"groups",
			"{name: g, hosts_rule: {enabled: true, positive: true, enforcing: true}, vms_rule: {enabled: false, positive: true}, hosts: [hv1]}",
		},
		"a rule ended, another begun": {
			model.KindGroup,
			Wanted{Settings: map[string]string{model.SettingNodesRule: "disabled", model.SettingVMsRule: "negative"}},
			"groups",
			"{name: g, hosts_rule: {enabled: false}, vms_rule: {enabled: true, positive: false}, hosts: [hv1]}",
		},
		"unset": {
			model.KindGroup,
			Wanted{Unset: []string{model.SettingNodesEnforcing, model.SettingVMsRule, model.MembersNodes}},
			"groups",
			"{name: g, hosts_rule: positive, vms_enforcing: false}",
		},
		"more members": {
			model.KindGroup,
			Wanted{Members: map[string][]string{model.MembersNodes: {"hv1", "hv2"}}},
			"groups",
			"{name: g, hosts_rule: {enabled: true, positive: true}, vms_rule: {enabled: false, positive: true}, hosts: [hv1, hv2]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := carriedOut(t, town(t), declared, false)
			before, _ := now.ResourceByName(c.kind, "g")
			edited, err := Edit(now, before, c.wanted)
			if err != nil {
				t.Fatal(err)
			}
			now = now.withResource(edited)
			exported := export(t, now, false)
			want := declaredIn(t, head+c.section+": ["+c.entry+"]\n", c.section, "g")
			if diff := cmp.Diff(want, declaredIn(t, exported, c.section, "g")); diff != "" {
				t.Error(diff)
			}
			if plan, problems := Diff(now, read(t, exported), false); len(plan.Changes)+len(problems) > 0 {
				t.Errorf("applied again it changes %+v\n%s", plan.Changes, lines(problems))
			}
		})
	}
}

// A spelling that stands in the record for a value that it no longer has is not written.
func TestAnotherPlannerHasNoOlderName(t *testing.T) {
	now := carriedOut(t, town(t), head+"zones: [{name: g, planner: FirstFitPlanner}]\n", false)
	zone, _ := now.ResourceByName(model.KindZone, "g")
	edited, err := Edit(now, zone, Wanted{Settings: map[string]string{"planner": "user-dispersing"}})
	if err != nil {
		t.Fatal(err)
	}
	edited.Spelled = zone.Spelled // as earlier releases have left it
	text := export(t, now.withResource(edited), false)
	if strings.Contains(text, "FirstFitPlanner") || !strings.Contains(text, "planner: user-dispersing") {
		t.Errorf("exported is\n%s", text)
	}
}

// What is added or set by a word of the designs is exported by it, as what a document has declared; our own word is our own again.
func TestWhatIsSetIsExportedAsItWasGiven(t *testing.T) {
	for _, kind := range []model.Kind{model.KindOffer, model.KindZone, model.KindPolicy} {
		now := town(t)
		planner := func(word string) Wanted {
			wanted := Wanted{Settings: map[string]string{model.SettingPlanner: word}}
			if kind == model.KindOffer {
				wanted.Settings["for"] = "vm"
			}
			return wanted
		}
		r, err := NewResource(now, kind, "g", planner("FirstFitPlanner"), "g", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		words := []string{"FirstFitPlanner", "first-fit", "FirstFitPlanner", "UserDispersingPlanner", "first-fit"}
		if kind == model.KindOffer {
			words = words[:3] // its planner is for good, but not the word for it
		}
		for _, word := range words {
			before := now.withResource(r)
			if r, err = Edit(before, r, planner(word)); err != nil {
				t.Fatal(err)
			}
			text := export(t, before.withResource(r), false)
			if form, _ := schema.FormOf(kind); declaredIn(t, text, form.Plural, "g")[model.SettingPlanner] != word {
				t.Errorf("%s set to %s is exported as\n%s", kind, word, text)
			}
		}
		if kind == model.KindOffer {
			continue
		}
		if r, err = Edit(now.withResource(r), r, Wanted{Unset: []string{model.SettingPlanner}}); err != nil || len(r.Spelled) > 0 {
			t.Errorf("%s without a planner is spelled %v, %v", kind, r.Spelled, err)
		}
	}
}
