package conformance

import (
	"encoding/json"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
)

// runPrefer places a VM that soft rules of its groups or preferred nodes want somewhere, among nodes that the rounds set apart.
func runPrefer(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM        string
		Hosts     []string
		Groups    []groupCase
		Running   running
		Preferred []string
		System    map[string]float64 `json:"system_scores"`
		Customer  map[string]float64 `json:"customer_scores"`
		Pressure  map[string]float64 `json:"cpu_pressure"`
		Policy    string
		SoftRules optional[string] `json:"soft_rules"`
		Unless    optional[bool]   `json:"prefer_unless_contended"`
	}](c, given)
	want := decode[struct {
		selection
		Kept optional[count]
	}](c, expect)
	w := grouped(c, g.Hosts, g.Groups, g.Running, nil)
	w.take(g.VM)
	w.systemScores(g.System)
	w.customerScores(g.Customer)
	for host, pressure := range g.Pressure {
		w.change(host, func(f *model.NodeFacts) { f.CPUPressure = &pressure })
	}
	w.policy = func(p *policies.Policy) { *p = declared(w, g.Policy, g.SoftRules, g.Unless) }
	request := w.request(placement.ForStart)
	request.Preferred = g.Preferred
	d := w.decideOn(w.view(), request)
	c.selected(d, want.selection)
	if want.Kept.given {
		c.same("how many nodes Prefer kept", d.choice.Kept, int(want.Kept.value))
	}
}

// declared is a built-in policy, or one like it that somebody has declared with parameters of its own.
func declared(w *world, name string, softRules optional[string], unless optional[bool]) policies.Policy {
	w.Helper()
	if name == "" {
		name = policies.Affinity
	}
	record, known := estate.Builtin(model.KindPolicy, name)
	if !known {
		w.Fatalf("there is no policy %q", name)
	}
	if softRules.given || unless.given {
		record.ID, record.Name = "own", "own"
		if softRules.given {
			record.Settings[schema.SettingSoftRules] = softRules.value
		}
		if unless.given && !unless.value {
			record.Settings[schema.SettingUnlessContended] = "false"
		}
		w.Resources = append(w.Resources, record)
	}
	cluster := *w.resource("cluster")
	cluster.Links = map[string]string{schema.LinkPolicy: record.ID}
	policy, _, err := estate.PolicyOf(&w.State, cluster)
	w.must(err)
	return policy
}
