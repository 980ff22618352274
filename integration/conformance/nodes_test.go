package conformance

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// figures are those of a node in a case. What is left out is as by default.
type figures struct {
	Physical  float64           `json:"ram_physical"`
	RAMRatio  optional[float64] `json:"ram_ratio"`
	Allocated float64           `json:"ram_allocated"`
	Free      optional[float64] `json:"ram_free_actual"`
	CPUs      optional[count]   `json:"cpus"`
	CPURatio  optional[float64] `json:"cpu_ratio"`
	VCPUs     count             `json:"vcpus_allocated"`
	Load      float64           `json:"load"` // 1: as much as there are CPUs
	State     optional[string]  `json:"state"`
}

// build adds a node with these figures.
func (f *figures) build(w *world, name string, unit units.Bytes, overhead *units.Bytes) {
	w.Helper()
	node := w.node(name)
	node.Settings = model.NodeSettings{Overhead: overhead}
	if f.RAMRatio.given {
		node.Settings.RAMRatio = &f.RAMRatio.value
	}
	if f.CPURatio.given {
		node.Settings.CPURatio = &f.CPURatio.value
	}
	cpus := int(f.CPUs.or(16))
	free, load := amount(f.Free.or(f.Physical), unit), f.Load*float64(cpus)
	facts := idle(amount(f.Physical, unit), cpus)
	facts.Available, facts.Load1 = &free, &load
	w.facts[name] = facts
	if f.State.given {
		w.stand(name, f.State.value)
	}
	w.holds(name, model.VM{Spec: model.VMSpec{Memory: amount(f.Allocated, unit), VCPUs: int(f.VCPUs)}})
}

func amount(n float64, unit units.Bytes) units.Bytes {
	return units.Bytes(math.Round(n * float64(unit)))
}

// unitOf is what memory is counted in: gibibytes if the case does not say.
func (c *checker) unitOf(name string) units.Bytes {
	c.Helper()
	unit, err := units.ParseBytes("1" + name)
	c.must(err)
	return unit
}

// states are FCO's states of a node in ours.
var states = map[string]struct {
	liveness    model.Liveness
	maintenance bool
}{
	"running":     {model.Up, false},
	"up":          {model.Up, false},
	"maintenance": {model.Up, true},
	"error":       {model.Degraded, false},
	"degraded":    {model.Degraded, false},
	"failed":      {model.Unreachable, false},
	"stopped":     {model.Unreachable, false},
	"unreachable": {model.Unreachable, false},
	"down":        {model.Unreachable, false},
	"recovery":    {model.Suspect, false},
	"recovering":  {model.Suspect, false},
	"suspect":     {model.Suspect, false},
	"offline":     {model.Unreachable, false},
	"starting":    {"", false},
	"rebooting":   {model.Suspect, false},
	"stopping":    {model.Suspect, false},
	"unknown":     {"", false},
}

// stand puts a node into one of FCO's states.
func (w *world) stand(node, state string) {
	w.Helper()
	ours, known := states[strings.ToLower(state)]
	if !known {
		w.Fatalf("there is no state %q", state)
	}
	w.node(node).Maintenance = ours.maintenance
	w.change(node, func(f *model.NodeFacts) { f.Liveness = ours.liveness })
}

func runSpecialKeys(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Node   figures
		Unit   optional[string]
		System []entry `json:"system_keys"`
	}](c, given)
	want := decode[struct {
		Special map[string]float64 `json:"node_special_keys"`
		Score   optional[float64]  `json:"system_score"`
	}](c, expect)
	w := newWorld(c)
	g.Node.build(w, "n", c.unitOf(g.Unit.or("GiB")), nil)
	w.set("cluster", model.SystemKey, g.System...)
	w.policy = withoutMemory // the case speaks of scores, whatever the node has room for
	columns := w.view().Columns(model.DefaultCluster)
	c.sameScores("the value", map[string]float64{
		model.SpecialRAM: columns.RAM.At(0), model.SpecialCPU: columns.CPU.At(0), model.SpecialLoad: columns.Busy.At(0),
	}, want.Special)
	if want.Score.given {
		c.near("the system score", w.decide(placement.ForStart).system["n"], want.Score.value)
	}
}

// runConstraint asks whether a VM fits on one node, with the figures that this is judged by.
func runConstraint(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Node     figures
		VM       float64 `json:"vm_ram"`
		Overhead optional[float64]
		Unit     optional[string]
	}](c, given)
	want := decode[struct {
		Uncontended optional[float64] `json:"uncontended_free"`
		Contended   optional[float64] `json:"contended_free"`
		Needed      optional[float64]
		Passes      optional[bool]
	}](c, expect)
	unit := c.unitOf(g.Unit.or("GiB"))
	var overhead *units.Bytes
	if g.Overhead.given {
		kept := amount(g.Overhead.value, unit)
		overhead = &kept
	}
	w := newWorld(c)
	g.Node.build(w, "n", unit, overhead)
	w.vm.Spec.Memory = amount(g.VM, unit)
	d := w.decide(placement.ForStart)
	if want.Passes.given {
		c.same("whether it fits", d.decision.Nodes[0].Admitted, want.Passes.value)
	}
	for name, available := range map[string]optional[float64]{"memory-promised": want.Uncontended, "memory-physical": want.Contended} {
		constraints := d.decision.Nodes[0].Constraints
		at := slices.IndexFunc(constraints, func(one placement.ConstraintResult) bool { return one.Constraint == name })
		if at < 0 || constraints[at].Available == nil || constraints[at].Needed == nil {
			c.Fatalf("%s gives no figures: %+v", name, constraints)
		}
		if available.given {
			c.near(name+", available", *constraints[at].Available/float64(unit), available.value)
		}
		if want.Needed.given {
			c.near(name+", needed", *constraints[at].Needed/float64(unit), want.Needed.value)
		}
	}
}

func runConstraintStates(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ States []string }](c, given)
	want := decode[struct{ Passes []bool }](c, expect)
	if len(g.States) != len(want.Passes) {
		c.Fatalf("%d states and %d answers", len(g.States), len(want.Passes))
	}
	for i, state := range g.States {
		w := newWorld(c)
		w.node("n")
		w.stand("n", state)
		c.same("whether a node that is "+state+" passes", w.decide(placement.ForStart).decision.Nodes[0].Admitted, want.Passes[i])
	}
}

// runNodeKeys compares the keys that nodes have with those that their cluster declares and they set.
func runNodeKeys(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Declared []struct {
			Name            string
			Default, Weight float64
			Sticky          bool
		} `json:"cluster_node_keys"`
		Overrides map[string]map[string]float64 `json:"node_overrides"`
	}](c, given)
	want := decode[struct {
		Nodes map[string]map[string]float64
	}](c, expect)
	w := newWorld(c)
	record := w.resource("cluster")
	for _, one := range g.Declared {
		declared := model.NodeKey{Name: one.Name, Default: one.Default, Sticky: one.Sticky, Weight: one.Weight}
		c.must(model.ValidateNodeKey(declared))
		record.NodeKeys = append(record.NodeKeys, declared)
	}
	for name, values := range g.Overrides {
		node := w.node(name)
		for key, value := range values {
			node.Keys[key] = value
		}
	}
	for name := range want.Nodes {
		w.node(name)
	}
	columns := w.view().Columns(model.DefaultCluster)
	for name, keys := range want.Nodes {
		at, found := columns.Index(name)
		if !found {
			c.Fatalf("there is no node %s", name)
		}
		got := map[string]float64{}
		for _, column := range columns.NodeKeys {
			got[column.Name] = column.Values.At(at)
		}
		c.same("the number of keys of "+name, len(got), len(keys))
		c.sameScores("the value on "+name, got, keys)
	}
}
