package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
)

// runProximity computes proximities, bare and as the score of a node for a VM that has the other value with weight 1.
func runProximity(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Pairs [][2]float64 }](c, given)
	want := decode[struct {
		Proximity []float64
		Tolerance optional[float64]
	}](c, expect)
	c.tolerance = want.Tolerance.or(c.tolerance)
	if len(g.Pairs) != len(want.Proximity) {
		c.Fatalf("%d pairs and %d proximities", len(g.Pairs), len(want.Proximity))
	}
	for i, pair := range g.Pairs {
		c.near(fmt.Sprintf("the proximity of %v", pair), key.Proximity(pair[0], pair[1]), want.Proximity[i])
		w := newWorld(c)
		w.give("n", entry{Name: "K", Value: pair[1]})
		w.set("server", model.SystemKey, entry{Name: "K", Value: pair[0], Weight: 1})
		c.near(fmt.Sprintf("the score of %v", pair), w.decide(placement.ForStart).system["n"], want.Proximity[i])
	}
}

func runThresholds(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Initial, Final optional[float64]
		Steps          optional[count]
	}](c, given)
	want := decode[struct {
		Thresholds []float64
		Step       optional[float64]
		Rounds     optional[count]
	}](c, expect)
	w := newWorld(c)
	w.rounds(g.Initial, g.Final, g.Steps)
	gate := w.affinity().Gate
	got := policies.Thresholds(gate.Initial, gate.Final, gate.Steps)
	if c.same("the number of thresholds", len(got), len(want.Thresholds)); len(got) == len(want.Thresholds) {
		for i := range got {
			c.near(fmt.Sprintf("threshold %d", i+1), got[i], want.Thresholds[i])
		}
	}
	if want.Rounds.given {
		c.same("the number of rounds", len(got), int(want.Rounds.value))
	}
	if want.Step.given && !want.Step.null && len(got) > 1 {
		c.near("the step", got[0]-got[1], want.Step.value)
	}
}

// runSelect chooses among nodes whose scores are given.
func runSelect(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		System         map[string]float64 `json:"system_scores"`
		Customer       map[string]float64 `json:"customer_scores"`
		Initial, Final optional[float64]
		Steps          optional[count]
	}](c, given)
	want := decode[selection](c, expect)
	w := newWorld(c)
	w.rounds(g.Initial, g.Final, g.Steps)
	w.systemScores(g.System)
	w.customerScores(g.Customer)
	c.selected(w.decide(placement.ForStart), want)
}

// scored is what a case expects of scores, and of the selection by them.
type scored struct {
	selection
	System map[string]float64 `json:"system_scores"`
	Select *selection         `json:"select"`
}

func (c *checker) scored(d decided, want scored) {
	c.Helper()
	c.sameScores("the system score", d.system, want.System)
	c.selected(d, want.selection)
	if want.Select != nil {
		c.selected(d, *want.Select)
	}
}

// only is the prefix of what is expected if the node that follows were the only one.
const only = "select_if_only_"

// runScore scores nodes by system keys. A field given as NAME_system_key or NAME_system_keys has the keys of a VM of its
// own, set on the VM; what is expected of it stands under NAME, or by itself when there is only one. The others stand above
// the VM, so that they give way to its keys. What is expected of a name without keys is expected of a VM without keys.
func runScore(c *checker, given, expect json.RawMessage) {
	var base struct {
		Nodes          map[string][]entry
		Initial, Final optional[float64]
		Steps          optional[count]
		Keys           []entry `json:"vm_system_keys"`
		Special        []entry `json:"special_keys"`
		Default        []entry `json:"cluster_default_system_key"`
	}
	own := map[string][]entry{}
	rest := map[string]json.RawMessage{}
	for name, raw := range decode[map[string]json.RawMessage](c, given) {
		who, one := strings.CutSuffix(name, "_system_key")
		who, many := strings.CutSuffix(who, "_system_keys")
		switch {
		case who == "vm" || !one && !many:
			rest[name] = raw
		case who == "cluster_default":
			rest["cluster_default_system_key"] = list(one, raw)
		default:
			own[who] = decode[[]entry](c, list(one, raw))
		}
	}
	again, err := json.Marshal(rest)
	c.must(err)
	c.must(strictly(again, &base))

	build := func(keys []entry, node string) decided {
		w := newWorld(c)
		w.rounds(base.Initial, base.Final, base.Steps)
		for name, values := range base.Nodes {
			if node == "" || name == node {
				w.give(name, values...)
			}
		}
		w.set("cluster", model.SystemKey, append(base.Default, base.Special...)...)
		w.set("server", model.SystemKey, append(base.Keys, keys...)...)
		return w.decide(placement.ForStart)
	}
	var check func(keys []entry, expect json.RawMessage)
	check = func(keys []entry, expect json.RawMessage) {
		plain := map[string]json.RawMessage{}
		for name, raw := range decode[map[string]json.RawMessage](c, expect) {
			node, alone := strings.CutPrefix(name, only)
			switch {
			case alone:
				c.selected(build(keys, node), decode[selection](c, raw))
			case name != "select" && name != "system_scores" && raw[0] == '{':
				check(own[name], raw)
			default:
				plain[name] = raw
			}
		}
		if len(plain) > 0 {
			again, err := json.Marshal(plain)
			c.must(err)
			c.scored(build(keys, ""), decode[scored](c, again))
		}
	}
	var alone []entry
	for _, keys := range own {
		if len(own) == 1 {
			alone = keys
		}
	}
	check(alone, expect)
}

// list makes a list of one.
func list(one bool, raw json.RawMessage) json.RawMessage {
	if one {
		return json.RawMessage("[" + string(raw) + "]")
	}
	return raw
}

// attempt is a start of one VM in a cluster of its own.
type attempt struct {
	Passing  optional[[]string] `json:"nodes_passing_constraints"`
	System   map[string]float64 `json:"system_scores"`
	Customer map[string]float64 `json:"customer_scores"`
	Cluster  struct {
		Local bool `json:"local_storage"`
	}
	Disk optional[string] `json:"primary_disk_node"`
}

// outcome is what a case expects of it.
type outcome struct {
	selection
	Algorithm optional[bool] `json:"algorithm_used"`
}

// runPipeline runs whole starts, one or several apart.
func runPipeline(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		attempt
		Cases []attempt
	}](c, given)
	want := decode[struct {
		outcome
		Outcomes []outcome
	}](c, expect)
	if len(g.Cases) != len(want.Outcomes) {
		c.Fatalf("%d cases and %d outcomes", len(g.Cases), len(want.Outcomes))
	}
	if len(g.Cases) == 0 {
		c.attempted(g.attempt, want.outcome)
	}
	for i := range g.Cases {
		c.attempted(g.Cases[i], want.Outcomes[i])
	}
}

func (c *checker) attempted(g attempt, want outcome) {
	c.Helper()
	w := newWorld(c)
	w.systemScores(g.System)
	w.customerScores(g.Customer)
	for _, node := range g.Passing.value {
		w.node(node)
	}
	for i := range w.Nodes {
		node := &w.Nodes[i]
		passes := !g.Passing.given
		for _, name := range g.Passing.value {
			passes = passes || name == node.ID
		}
		node.Maintenance = !passes
	}
	if g.Cluster.Local {
		w.setting(model.SettingStorage, string(model.LocalStorage))
	}
	if !g.Disk.null && g.Disk.given {
		w.node(g.Disk.value)
		w.vm.Home = g.Disk.value
	}
	d := w.decide(placement.ForStart)
	c.selected(d, want.selection)
	if want.Algorithm.given {
		used := false
		for _, node := range d.decision.Nodes {
			used = used || len(node.Terms) > 0 || node.Band > 0
		}
		c.same("whether the algorithm was used", used, want.Algorithm.value)
	}
}
