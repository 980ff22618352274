package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/document"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// runDeclaredGroup reads a group as a document declares it, with the names that its fields have in the designs.
func runDeclaredGroup(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Group json.RawMessage }](c, given)
	want := decode[struct {
		VMsRule   ruleCase `json:"vms_rule"`
		HostsRule ruleCase `json:"hosts_rule"`
		Hosts     []string
		Refused   optional[string] // a part of why
	}](c, expect)
	declared, problems := document.Parse("case", []byte("format: berth/estate/v1\ngroups: ["+string(g.Group)+"]\n"))
	err := schema.Problems(problems)
	if want.Refused.given {
		c.same("whether it is refused because of "+want.Refused.value, err != nil && strings.Contains(err.Error(), want.Refused.value), true)
		return
	}
	c.must(err)
	one := declared.Entries[0]
	record := model.Resource{Kind: model.KindGroup, Settings: one.Settings}
	group := model.GroupOf(&record, model.DefaultCluster)
	c.same("the rule for VMs", fmt.Sprint(group.VMsRule), fmt.Sprint(model.Rule{
		Polarity: model.Polarity(want.VMsRule.Rule), Enforcing: want.VMsRule.Enforcing,
	}))
	c.same("the rule for hosts", fmt.Sprint(group.NodesRule), fmt.Sprint(model.Rule{
		Polarity: model.Polarity(want.HostsRule.Rule), Enforcing: want.HostsRule.Enforcing,
	}))
	c.sameSet("the hosts", one.Members[model.MembersNodes], want.Hosts)
}

// runExported applies a document that names these hosts, and compares what is exported with what was declared.
func runExported(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts    []string
		Document map[string][]map[string]any
	}](c, given)
	want := decode[struct {
		Document map[string][]map[string]any
	}](c, expect)
	var now estate.State
	for _, name := range g.Hosts {
		now.Nodes = append(now.Nodes, model.Node{ID: name, Name: name, Cluster: model.DefaultCluster})
	}
	text, err := yaml.Marshal(g.Document)
	c.must(err)
	declared, problems := document.Parse("case", append([]byte("format: berth/estate/v1\n"), text...))
	c.must(schema.Problems(problems))
	plan, problems := estate.Diff(now, declared, false)
	c.must(schema.Problems(problems))
	plan.Assign(time.Unix(0, 0), func(kind model.Kind, name string) string { return schema.Ref(kind, name) })
	after := plan.Apply(now)
	exported, err := estate.Export(after, false)
	c.must(err)
	var written map[string]any
	c.must(yaml.Unmarshal(exported, &written))
	for section, entries := range want.Document {
		c.same("what is exported of "+section, asJSON(c, written[section]), asJSON(c, entries))
	}
	again, problems := document.Parse("export", exported)
	c.must(schema.Problems(problems))
	plan, problems = estate.Diff(after, again, true)
	c.must(schema.Problems(problems))
	c.same("how many changes its export is", len(plan.Changes), 0)
}

// asJSON is a value without the order of its fields.
func asJSON(c *checker, value any) string {
	text, err := json.Marshal(value)
	c.must(err)
	return string(text)
}

// runPlannerIn finds the planner of a cluster that has a zone, or a policy, with one by whatever name.
func runPlannerIn(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Zone   optional[string] `json:"zone_planner"`
		Policy optional[string] `json:"policy_planner"`
	}](c, given)
	want := decode[struct{ Planner, From string }](c, expect)
	w := newWorld(c)
	cluster := w.resource("cluster")
	cluster.Links = map[string]string{}
	named := func(kind model.Kind, name string) map[string]string {
		form, _ := schema.FormOf(kind)
		canonical, err := form.Setting(schema.SettingPlanner).Canonical(name)
		c.must(err)
		return map[string]string{schema.SettingPlanner: canonical}
	}
	if g.Policy.given {
		cluster.Links[schema.LinkPolicy] = "p"
		w.Resources = append(w.Resources, model.Resource{
			ID: "p", Kind: model.KindPolicy, Name: "own", Settings: named(model.KindPolicy, g.Policy.value),
		})
	}
	cluster = w.resource("cluster")
	if g.Zone.given {
		cluster.Links[schema.LinkPod] = "pod"
		w.Resources = append(w.Resources,
			model.Resource{ID: "pod", Kind: model.KindPod, Name: "pod", Links: map[string]string{schema.LinkZone: "z"}},
			model.Resource{ID: "z", Kind: model.KindZone, Name: "home", Settings: named(model.KindZone, g.Zone.value)})
	}
	planner, from := estate.PlannerIn(&w.State, *w.resource("cluster"))
	c.same("the planner", planner, want.Planner)
	c.same("where it comes from", from, want.From)
}
