package estate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/affinity"
	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
)

// townText makes three nodes and five VMs of two clusters, with groups.
const townText = head + `
clusters: [{name: default}, {name: edge}]
customers: [{name: acme}]
vdcs: [{name: here, customer: acme}, {name: there, customer: acme, cluster: edge}]
nodes:
  - {name: hv1, labels: [rack-1]}
  - {name: hv2, labels: [rack-1, ssd], management: true, unbalanced: true}
  - {name: hv9, cluster: edge, labels: [rack-1]}
vms:
  - {name: web-1, vdc: here, memory: 1G, vcpus: 1, labels: [web]}
  - {name: web-2, memory: 1G, vcpus: 1, labels: [db, web], migration: manual, preferred: [hv2, hv1]}
  - {name: db, vdc: here, memory: 1G, vcpus: 1, migration: never}
  - {name: far, vdc: there, memory: 1G, vcpus: 1, labels: [web], preferred: [hv9]}
groups:
  - {name: web-apart, vms_rule: negative, vms_enforcing: true, vm_labels: [web], vms: [db], unbalanced: true}
  - {name: in-rack, nodes_rule: positive, vms: [db, web-1], nodes: [hv1], node_labels: [ssd], priority: 2.50}
  - {name: far-away, cluster: edge, vms_rule: positive, vms: [far], nodes: [hv9]}
  - {name: empty}
`

func town(t testing.TB) State {
	t.Helper()
	var now State
	for i, name := range []string{"hv1", "hv2", "hv9"} {
		now.Nodes = append(now.Nodes, model.Node{ID: fmt.Sprint("n", i), Name: name, Cluster: model.DefaultCluster, Revision: uint64(i + 1)})
	}
	return carriedOut(t, now, townText, false)
}

func TestGroupsOf(t *testing.T) {
	now := town(t)
	name := MemberNames(Indexed(&now))
	said := func(groups []model.Group) []string {
		var all []string
		for _, g := range groups {
			names := func(ids []string) string {
				var words []string
				for _, id := range ids {
					words = append(words, name(id))
				}
				slices.Sort(words)
				return strings.Join(words, " ")
			}
			all = append(all, fmt.Sprintf("%s/%s: %s | %s | %g", g.Cluster, g.Name, names(g.VMs), names(g.Nodes), g.Priority))
		}
		return all
	}
	for clusterName, want := range map[string][]string{
		// far carries the label too, and is in another cluster.
		"default": {"default/empty:  |  | 1", "default/in-rack: db web-1 | hv1 hv2 | 2.5", "default/web-apart: db web-1 web-2 |  | 1"},
		"edge":    {"edge/far-away: far | hv9 | 1"},
		"nowhere": nil,
	} {
		if diff := cmp.Diff(want, said(GroupsOf(Indexed(&now), clusterName))); diff != "" {
			t.Errorf("%s: %s", clusterName, diff)
		}
	}
}

// What documents declare is kept, exported as it was written, and changes are told field by field.
func TestGroupsInWords(t *testing.T) {
	now := town(t)
	run("web-1", "n0")(&now)
	golden(t, "town.golden", export(t, now, false))
	text := head + `
policies: [{name: own, balancer: even-load, parameters: {HighCPU: 75.5}, weighers: {vm-count: 2, customer-keys: 1}}]
clusters: [{name: default, enforcement: manual, balancing: automatic, balance_window: "sun,sat 22:00-06:00", cooldown: 90m, parallel_moves: 4}]
nodes: [{name: hv1, labels: [rack-2], management: true}, {name: hv2}]
vms:
  - {name: web-1, vdc: here, memory: 1G, vcpus: 1, migration: never, preferred: [hv1]}
  - {name: web-2, memory: 1G, vcpus: 1, labels: [web], preferred: [hv1]}
  - {name: new, memory: 1G, vcpus: 1, labels: [x]}
groups:
  - {name: in-rack, nodes_rule: negative, nodes_enforcing: true, vms: [web-2, new], nodes: [hv1, hv2], vm_labels: [x, b]}
  - {name: fresh, vms: [new, db], vms_rule: positive}
  - {name: web-apart}
`
	plan, problems := Diff(now, read(t, text), false)
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	var b strings.Builder
	for _, change := range plan.Changes {
		b.WriteString(string(change.Action) + " " + schema.Ref(change.Kind, change.Name) + "\n")
		for _, field := range change.Fields {
			b.WriteString("  " + field.String() + "\n")
		}
	}
	golden(t, "groups.golden", b.String())

	// The members that are new have their IDs, in their order.
	plan.Assign(epoch, func(kind model.Kind, name string) string { return "a-" + string(kind) + "-" + name })
	after := plan.Apply(now)
	fresh, _ := after.ResourceByName(model.KindGroup, "fresh")
	db, _ := after.VM("db")
	if want := []string{"a-vm-new", db.ID}; !slices.Equal(fresh.Members[model.MembersVMs], want) {
		t.Errorf("members %v, want %v", fresh.Members, want)
	}
	if rest, problems := Diff(after, read(t, text), false); len(rest.Changes) > 0 || len(problems) > 0 {
		t.Errorf("something is left to do: %+v\n%s", rest.Changes, lines(problems))
	}
}

func TestGroupsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		prune      bool
	}{
		"a VM that is not there": {
			text: "groups: [{name: g, vms: [web-9]}]",
			want: "e:2: group/g: its member vm/web-9 does not exist: declare it under vms, or correct the name",
		},
		"a node that is not there": {
			text: "groups: [{name: g, nodes: [hv7]}]",
			want: "e:2: group/g: its member node/hv7 does not exist: correct the name, or leave it out: a document does not create nodes",
		},
		"a VM of another cluster": {
			text: "groups: [{name: g, vms: [web-1, far]}]",
			want: "e:2: group/g: its member vm/far is in cluster edge, and the group is of cluster default: " +
				"take it out of the group first, or leave it in cluster default",
		},
		"a node of another cluster": {
			text: "groups: [{name: g, cluster: edge, nodes: [hv1]}]",
			want: "e:2: group/g: its member node/hv1 is in cluster default, and the group is of cluster edge: " +
				"take it out of the group first, or leave it in cluster edge",
		},
		"a VM twice": {
			text: "groups: [{name: g, vms: [db, db]}]",
			want: "e:2: group/g: vms lists db twice: keep one",
		},
		"a group twice": {
			text: "groups: [{name: g}, {name: g}]",
			want: "e:2: group/g: another group has the name, in line 2: rename one or leave it out",
		},
		"another cluster": {
			text: "groups:\n- name: empty\n  cluster: edge",
			want: "e:4: group/empty: its cluster cannot change once the group is there: delete it and make another one",
		},
		"a VM that goes": {
			prune: true,
			text:  "clusters: [{name: default}, {name: edge}]\ngroups: [{name: g, vms: [db]}]",
			want: "e:3: group/g: its member vm/db does not exist: it goes, because the document does not declare it: " +
				"declare it under vms, or leave it out",
		},
		"a VM's VDC in another cluster": {
			text: "vdcs: [{name: here, customer: acme, cluster: edge}]",
			want: "group/in-rack: its member vm/db is in cluster edge, and the group is of cluster default: " +
				"take it out of the group first, or leave it in cluster default\n" +
				"group/in-rack: its member vm/web-1 is in cluster edge, and the group is of cluster default: " +
				"take it out of the group first, or leave it in cluster default\n" +
				"group/web-apart: its member vm/db is in cluster edge, and the group is of cluster default: " +
				"take it out of the group first, or leave it in cluster default",
		},
		"a node that changes its cluster": {
			text: "nodes: [{name: hv1, cluster: edge}]",
			want: "group/in-rack: its member node/hv1 is in cluster edge, and the group is of cluster default: " +
				"take it out of the group first, or leave it in cluster default\n" +
				"vm/web-2: it prefers node/hv1, which is in cluster edge, and belongs into cluster default: " +
				"take the node from those that it prefers first",
		},
		"a preferred node of another cluster": {
			text: "vms: [{name: db, vdc: here, memory: 1G, vcpus: 1, preferred: [hv9]}]",
			want: "e:2: vm/db: it prefers node/hv9, which is in cluster edge, and belongs into cluster default: " +
				"take the node from those that it prefers first",
		},
		"a preferred node that is not there": {
			text: "vms: [{name: db, vdc: here, memory: 1G, vcpus: 1, preferred: [hv7]}]",
			want: "e:2: vm/db: node/hv7, which it prefers, does not exist: correct the name, or leave it out",
		},
		"who may move it": {
			text: "vms: [{name: db, memory: 1G, vcpus: 1, migration: sometimes}]",
			want: `e:2: vm/db: migration "sometimes" is not valid: want automatic, manual or never`,
		},
		"a bad label": {
			text: "vms: [{name: db, memory: 1G, vcpus: 1, labels: [a b]}]",
			want: `e:2: vm/db: label "a b" is not valid: want 1 to 64 letters, digits, dots, underscores or dashes, ` +
				`the first one a letter or a digit`,
		},
		"a label twice": {
			text: "nodes: [{name: hv1, labels: [a, a]}]",
			want: `e:2: node/hv1: labels "a" is not valid: want each of them once`,
		},
		"a group's bad label": {
			text: "groups: [{name: g, vm_labels: [-]}]",
			want: `e:2: group/g: label "-" is not valid: want 1 to 64 letters, digits, dots, underscores or dashes, ` +
				`the first one a letter or a digit`,
		},
		"no priority": {
			text: "groups: [{name: g, priority: 0}]",
			want: `e:2: group/g: priority "0" is not valid: want a number above 0 and up to 1000000, with at most seven digits behind the point`,
		},
		"too fine a priority": {
			text: "groups: [{name: g, priority: 0.00000001}]",
			want: `e:2: group/g: priority "0.00000001" is not valid: want a number above 0 and up to 1000000, ` +
				`with at most seven digits behind the point`,
		},
		"a rule": {
			text: "groups: [{name: g, vms_rule: together}]",
			want: `e:2: group/g: vms_rule "together" is not valid: want positive, negative or disabled`,
		},
		"a window": {
			text: "clusters: [{name: default, balance_window: nights}]",
			want: `e:2: cluster/default: balance_window "nights" is not valid: want a time of the week in UTC, ` +
				`as "22:00-06:00" or "Sat,Sun 00:00-24:00"`,
		},
		"a cool-down": {
			text: "clusters: [{name: default, cooldown: 721h}]",
			want: `e:2: cluster/default: cooldown "721h" is not valid: want whole seconds from 0s to 720h, for instance 30m`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := town(t)
			doc, problems := document.Parse("e", []byte(head+c.text))
			if len(problems) == 0 {
				_, problems = Diff(now, doc, c.prune)
			}
			got := strings.TrimSuffix(strings.ReplaceAll("\n"+lines(problems), "\ne: ", "\n")[1:], "\n")
			if !sameLines(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Groups that contradict each other are refused, whatever the change is that makes them; those that only clash are not.
func TestContradictionsAreRefused(t *testing.T) {
	now := carriedOut(t, town(t), head+"groups: [{name: together, vms_rule: positive, vms_enforcing: true, vm_labels: [pair]}]", false)
	const want = "group/together and group/web-apart"
	for name, try := range map[string]func() error{
		"a document": func() error {
			doc := read(
				t,
				head+"vms: [{name: web-1, vdc: here, memory: 1G, vcpus: 1, labels: [pair, web]}, "+
					"{name: web-2, memory: 1G, vcpus: 1, labels: [pair, web]}]",
			)
			_, problems := Diff(now, doc, false)
			return schema.Problems(problems)
		},
		"a group": func() error {
			together, _ := now.ResourceByName(model.KindGroup, "together")
			_, err := Edit(now, together, Wanted{Members: map[string][]string{"vms": {"web-1", "web-2"}}})
			return err
		},
		"a VM's label": func() error {
			first, _ := now.VM("web-1")
			first.Labels = []string{"pair", "web"}
			second, _ := now.VM("web-2")
			second.Labels = []string{"pair", "web"}
			_, err := EditVM(now.withVM(first), second, WantedVM{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := try()
			if err == nil || !strings.Contains(err.Error(), "together") || !strings.Contains(err.Error(), "web-apart") ||
				!strings.Contains(err.Error(), "web-1") {
				t.Errorf("got %v, want the groups and VMs named, as %s", err, want)
			}
		})
	}
}

func TestEditGroup(t *testing.T) {
	now := town(t)
	made, err := NewResource(now, model.KindGroup, "g", Wanted{
		Settings: map[string]string{"vms-rule": "positive", "priority": "1.50"},
		Members:  map[string][]string{"vms": {"web-2", "db"}, "nodes": {"hv2", "n0"}}, Lists: map[string][]string{"vm-labels": {"b", "a"}},
	}, "id", epoch)
	if err != nil {
		t.Fatal(err)
	}
	db, _ := now.VM("db")
	web2, _ := now.VM("web-2")
	vms := []string{db.ID, web2.ID}
	slices.Sort(vms)
	want := model.Resource{
		ID: "id", Kind: model.KindGroup, Name: "g", CreatedAt: epoch,
		Settings: map[string]string{model.SettingVMsRule: "positive", model.SettingPriority: "1.5"},
		Members:  map[string][]string{model.MembersVMs: vms, model.MembersNodes: {"n0", "n1"}},
		Lists:    map[string][]string{model.ListVMLabels: {"a", "b"}},
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	before := made
	made, err = Edit(now.withResource(made), made, Wanted{
		Members: map[string][]string{"vms": {}}, Lists: map[string][]string{
			"vm_labels": nil, "node_labels": {"x"},
		}, Unset: []string{"priority", "nodes"},
	})
	if err != nil || made.Members != nil || !cmp.Equal(made.Lists, map[string][]string{model.ListNodeLabels: {"x"}}) {
		t.Errorf("%+v, %v", made, err)
	}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("the record given has changed: %s", diff)
	}
	for want, wanted := range map[string]Wanted{
		`group/g: the vm "x" does not exist: choose one of 'berth vm list'`:     {Members: map[string][]string{"vms": {"x"}}},
		`group/g: the node "x" does not exist: choose one of 'berth node list'`: {Members: map[string][]string{"nodes": {"x"}}},
		"group/g: vms lists db twice: keep one":                                 {Members: map[string][]string{"vms": {"db", "db"}}},
		"group/g: a group has no members disks: it has ":                        {Members: map[string][]string{"disks": {"x"}}},
		"group/g: a group has no list colours: it has ":                         {Lists: map[string][]string{"colours": {"x"}}},
		`group/g: vm_labels "a" is not valid: want each of them once`:           {Lists: map[string][]string{"vm_labels": {"a", "a"}}},
		"group/g: a group has no colour: it has ":                               {Unset: []string{"colour"}},
	} {
		if _, err := Edit(now, made, wanted); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEditVMsLabels(t *testing.T) {
	now := town(t)
	db, _ := now.VM("db")
	db.Labels, db.Migration = []string{"a", "b"}, model.MigrateManual
	changed, err := EditVM(now, db, WantedVM{[]string{"preferred"}, model.VM{Preferred: []string{"hv2", "hv1"}}})
	if err != nil || !slices.Equal(changed.Preferred, []string{"n0", "n1"}) {
		t.Fatalf("%+v, %v", changed, err)
	}
	if changed, err = EditVM(now, changed, WantedVM{Fields: []string{"preferred"}}); err != nil || changed.Preferred != nil {
		t.Errorf("%+v, %v", changed, err)
	}
	db.Labels = []string{"b", "a"}
	if _, err := EditVM(now, db, WantedVM{}); err == nil || !strings.Contains(err.Error(), "not in their order") {
		t.Errorf("labels in disorder: %v", err)
	}
	db.Labels, db.Migration = nil, "sometimes"
	if _, err := EditVM(now, db, WantedVM{}); err == nil || !strings.Contains(err.Error(), `migration "sometimes" is not valid`) {
		t.Errorf("got %v", err)
	}
	node := now.Nodes[0]
	node.Labels = make([]string, model.MaxLabels+1)
	if err := EditNode(now, node); err == nil || !strings.Contains(err.Error(), "labels of 65 words is not valid: want at most 64") {
		t.Errorf("got %v", err)
	}
	node.Labels, node.Management = []string{"x"}, true
	want := []FieldChange{{Field: fieldLabels, From: "rack-1", To: "x"}, {Field: "management", From: "false", To: "true"}}
	if diff := cmp.Diff(want, NodeFields(now.Nodes[0], node)); diff != "" {
		t.Error(diff)
	}
}

// A group's members are in the request for a VM by its labels, and what it prefers is too.
func TestRequestTellsLabelsAndPreferences(t *testing.T) {
	now := town(t)
	vm, _ := now.VM("web-2")
	resolved, err := Resolve(&now, vm)
	if err != nil {
		t.Fatal(err)
	}
	request := Request(resolved, vm, placement.ForStart)
	if !slices.Equal(request.Labels, []string{"db", "web"}) || !slices.Equal(request.Preferred, []string{"n0", "n1"}) {
		t.Errorf("%+v", request)
	}
}

func TestConflicts(t *testing.T) {
	now := town(t)
	if found := Conflicts(Indexed(&now), "nowhere"); found != nil {
		t.Errorf("conflicts of no cluster: %+v", found)
	}
	// Three VMs apart on two nodes: it may be saved, and people are told.
	found := Conflicts(Indexed(&now), model.DefaultCluster)
	if !slices.ContainsFunc(found, func(c affinity.Conflict) bool {
		return c.Kind == affinity.TooFewNodes && c.Severity == affinity.Warning && slices.Equal(c.Groups, []string{"web-apart"}) &&
			strings.Contains(c.Text, "web-2")
	}) {
		t.Errorf("got %+v", found)
	}
	now.Nodes[1].Maintenance = true
	less := Conflicts(Indexed(&now), model.DefaultCluster)
	if cmp.Equal(found, less) {
		t.Error("a node in maintenance counts as if it took VMs")
	}
}
