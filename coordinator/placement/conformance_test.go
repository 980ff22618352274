package placement

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/weigher"
	"berth/shared/units"
)

const tolerance = 1e-6

func near(a, b float64) bool { return math.Abs(a-b) <= tolerance }

// The conformance cases are computed from the design's text. Each kind has one runner; an unknown kind fails.
func TestConformance(t *testing.T) {
	runners := map[string]func(*testing.T, json.RawMessage, json.RawMessage){
		"proximity":         runProximity,
		"thresholds":        runThresholds,
		"special_keys":      runSpecialKeys,
		"select":            runSelect,
		"score":             runScore,
		"constraint":        runConstraint,
		"constraint_states": runConstraintStates,
	}
	files, err := filepath.Glob("testdata/conformance/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct {
			CaseCount int `json:"case_count"`
			Cases     []struct {
				ID, Kind      string
				Given, Expect json.RawMessage
			}
		}
		if err := json.Unmarshal(content, &suite); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(suite.Cases) != suite.CaseCount {
			t.Errorf("%s: %d cases, it says %d", file, len(suite.Cases), suite.CaseCount)
		}
		for _, one := range suite.Cases {
			t.Run(one.ID, func(t *testing.T) {
				run, known := runners[one.Kind]
				if !known {
					t.Fatalf("unknown kind %q", one.Kind)
				}
				run(t, one.Given, one.Expect)
			})
		}
	}
}

// decode is strict: a field that the runner does not know would go untested.
func decode[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var into T
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&into); err != nil {
		t.Fatal(err)
	}
	return into
}

func runProximity(t *testing.T, given, expect json.RawMessage) {
	pairs := decode[struct{ Pairs [][2]float64 }](t, given).Pairs
	want := decode[struct {
		Proximity []float64
		Tolerance float64
	}](t, expect).Proximity
	for i, pair := range pairs {
		if got := key.Proximity(pair[0], pair[1]); !near(got, want[i]) {
			t.Errorf("proximity of %v is %v, want %v", pair, got, want[i])
		}
	}
}

func runThresholds(t *testing.T, given, expect json.RawMessage) {
	g := decode[struct {
		Initial, Final float64
		Steps          int
	}](t, given)
	want := decode[struct {
		Thresholds []float64
		Step       *float64
	}](t, expect)
	got := Thresholds(g.Initial, g.Final, g.Steps)
	if !slices.EqualFunc(got, want.Thresholds, near) {
		t.Errorf("thresholds are %v, want %v", got, want.Thresholds)
	}
	if want.Step != nil && !near(got[0]-got[1], *want.Step) {
		t.Errorf("the step is %v, want %v", got[0]-got[1], *want.Step)
	}
}

func runSpecialKeys(t *testing.T, given, expect json.RawMessage) {
	g := decode[struct {
		Node struct {
			Physical  float64 `json:"ram_physical"`
			RAMRatio  float64 `json:"ram_ratio"`
			Allocated float64 `json:"ram_allocated"`
			CPUs      int     `json:"cpus"`
			CPURatio  float64 `json:"cpu_ratio"`
			VCPUs     int     `json:"vcpus_allocated"`
			Load      float64
		}
		SystemKeys []key.Weighted `json:"system_keys"`
	}](t, given)
	want := decode[struct {
		Keys  map[string]float64 `json:"node_special_keys"`
		Score float64            `json:"system_score"`
	}](t, expect)
	node := accounted(cluster.NodeSettings{RAMRatio: &g.Node.RAMRatio, CPURatio: &g.Node.CPURatio}, cluster.NodeFacts{
		Inventory: true, Memory: gibibytes(g.Node.Physical), CPUs: g.Node.CPUs, Telemetry: true, TelemetryAt: noon,
		Load1: ptr(g.Node.Load * float64(g.Node.CPUs)),
	}, g.Node.Allocated, g.Node.VCPUs)
	view := cluster.View{At: noon}
	in := &rule.Input{Columns: view.ColumnsOf("c", []*cluster.NodeView{node}), SystemKeys: g.SystemKeys}
	in.Resolve()
	for name, column := range map[string][]float64{
		cluster.SpecialRAM: in.Columns.RAM, cluster.SpecialCPU: in.Columns.CPU, cluster.SpecialLoad: in.Columns.Busy,
	} {
		if !near(column[0], want.Keys[name]) {
			t.Errorf("%s is %v, want %v", name, column[0], want.Keys[name])
		}
	}
	systemKeys, _ := weigher.ByName("system-keys")
	if got := systemKeys.Weigh(in, 0, nil); !near(got, want.Score) {
		t.Errorf("the score is %v, want %v", got, want.Score)
	}
}

func gibibytes(n float64) units.Bytes { return units.Bytes(n * float64(units.GiB)) }

// accounted is a node with this much allocated to a VM.
func accounted(settings cluster.NodeSettings, facts cluster.NodeFacts, allocated float64, vcpus int) *cluster.NodeView {
	vm := cluster.VM{ID: "u1", Holder: "n1", Spec: cluster.VMSpec{Memory: gibibytes(allocated), VCPUs: vcpus}}
	vm.StartedAt = noon.Add(-time.Hour)
	node := cluster.Node{ID: "n1", Name: "n1", Settings: settings}
	view := cluster.NewView(noon, 0, cluster.Records{Nodes: []cluster.Node{node}, VMs: []cluster.VM{vm}}, map[string]cluster.NodeFacts{"n1": facts})
	return view.Nodes[0]
}

// selected is what a case expects of the rounds.
type selected struct {
	Round       *int
	Threshold   *float64
	Band        []string
	Winners     []string
	FailedPhase *string `json:"failed_phase"`
}

// checkSelect runs Gate, Weigh and Select on given scores, for many seeds: a tie may go to any winner, and to no other.
func checkSelect(t *testing.T, gate Gate, system, customer map[string]float64, want selected) {
	t.Helper()
	byID := func(scores map[string]float64) weigher.Weigher {
		return weigher.Weigher{Name: "given", Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
			return scores[in.Columns.IDs[node]]
		}}
	}
	e, err := NewEngine(Affinity())
	if err != nil {
		t.Fatal(err)
	}
	e.thresholds = Thresholds(gate.Initial, gate.Final, gate.Steps)
	e.gated, e.weighers = byID(system), []weigher.Weigher{byID(customer)}
	columns := emptyNodes(slices.Sorted(maps.Keys(system))...)
	for seed := range uint64(20) {
		choice := e.Choose(columns, noon, &Request{Memory: units.MiB}, seed)
		if want.Round == nil {
			if choice.Node >= 0 || len(want.Winners) != 0 || want.FailedPhase == nil || string(choice.FailedPhase) != *want.FailedPhase {
				t.Fatalf("got %+v, want a failure in the system rounds", choice)
			}
			continue
		}
		var band []string
		for _, c := range e.order() {
			if c.band == choice.Round {
				band = append(band, columns.IDs[c.node])
			}
		}
		slices.Sort(band)
		if choice.Round != *want.Round || !near(choice.Threshold, *want.Threshold) || choice.Band != len(band) ||
			!slices.Equal(band, want.Band) || !slices.Contains(want.Winners, columns.IDs[choice.Node]) {
			t.Fatalf("%+v, band %v, %s won; want %d, %v, one of %v",
				choice, band, columns.IDs[choice.Node], *want.Round, want.Band, want.Winners)
		}
	}
}

func runSelect(t *testing.T, given, expect json.RawMessage) {
	g := decode[struct {
		System         map[string]float64 `json:"system_scores"`
		Customer       map[string]float64 `json:"customer_scores"`
		Initial, Final float64
		Steps          int
	}](t, given)
	gate := Gate{Kind: GateBands, Initial: g.Initial, Final: g.Final, Steps: g.Steps}
	checkSelect(t, gate, g.System, g.Customer, decode[selected](t, expect))
}

// nodeKeys are a node's keys as pairs of name and value.
type nodeKeys [][2]any

func (k nodeKeys) values() []key.Value {
	var values []key.Value
	for _, pair := range k {
		values = append(values, key.Value{Name: pair[0].(string), Value: pair[1].(float64)})
	}
	return values
}

// scored is what a case expects of scores, and of the selection by them with the default rounds.
type scored struct {
	Scores  map[string]float64 `json:"system_scores"`
	Select  *selected          `json:"select"`
	Winners []string           `json:"winners"`
	Alone   *selected          `json:"select_if_only_dedicated"`
}

func runScore(t *testing.T, given, expect json.RawMessage) {
	g := decode[struct {
		Keys     []key.Weighted      `json:"vm_system_keys"`
		Specials []key.Weighted      `json:"special_keys"`
		Default  *key.Weighted       `json:"cluster_default_system_key"`
		Owner    *key.Weighted       `json:"owner_system_key"`
		Outsider *key.Weighted       `json:"outsider_system_key"`
		Nodes    map[string]nodeKeys `json:"nodes"`
	}](t, given)
	want := decode[struct {
		scored
		Ordinary *scored
		Owner    *scored
	}](t, expect)
	with := func(one *key.Weighted) []key.Weighted {
		keys := append(slices.Clone(g.Keys), g.Specials...)
		if one != nil {
			keys = append(keys, *one)
		}
		return keys
	}
	if g.Owner != nil {
		checkScores(t, g.Nodes, with(g.Default), *want.Ordinary)
		checkScores(t, g.Nodes, with(g.Owner), *want.Owner) // of one name: the lower level has taken the default's place
		return
	}
	checkScores(t, g.Nodes, with(g.Outsider), want.scored)
}

func checkScores(t *testing.T, nodes map[string]nodeKeys, wanted []key.Weighted, want scored) {
	t.Helper()
	scores := make(map[string]float64)
	for id, keys := range nodes {
		scores[id] = key.Score(wanted, keys.values())
		if !near(scores[id], want.Scores[id]) {
			t.Errorf("%s scores %v, want %v", id, scores[id], want.Scores[id])
		}
	}
	if want.Select != nil {
		checkSelect(t, Bands(), scores, nil, *want.Select)
	}
	if want.Winners != nil {
		best := slices.Max(slices.Collect(func(yield func(float64) bool) {
			for _, score := range scores {
				if !yield(score) {
					return
				}
			}
		}))
		for _, winner := range want.Winners {
			if scores[winner] != best {
				t.Errorf("%s scores %v, the best is %v", winner, scores[winner], best)
			}
		}
	}
	if want.Alone != nil {
		checkSelect(t, Bands(), map[string]float64{"dedicated": scores["dedicated"]}, nil, *want.Alone)
	}
}

// placeOn asks the whole engine for a VM on one node.
func placeOn(node cluster.Node, facts cluster.NodeFacts, vms []cluster.VM, memory units.Bytes) NodeResult {
	facts.Liveness, facts.Inventory, facts.InventoryAt, facts.DomainsKnown = stateOr(facts.Liveness), true, noon, true
	facts.Telemetry, facts.TelemetryAt, facts.CPUs = true, noon, 16
	facts.Load1 = ptr(0.0)
	view := cluster.NewView(noon, 0, cluster.Records{Nodes: []cluster.Node{node}, VMs: vms}, map[string]cluster.NodeFacts{node.ID: facts})
	return Explain(Place(view, Request{
		Purpose: ForStart, VM: "new", VMName: "new", Memory: memory, VCPUs: 1, SystemKeys: specials(),
	}, Affinity(), 1)).Nodes[0]
}

func stateOr(liveness cluster.Liveness) cluster.Liveness {
	if liveness == "" {
		return cluster.Up
	}
	return liveness
}

func runConstraint(t *testing.T, given, expect json.RawMessage) {
	g := decode[struct {
		Node struct {
			Physical  float64 `json:"ram_physical"`
			Ratio     float64 `json:"ram_ratio"`
			Allocated float64 `json:"ram_allocated"`
			Free      float64 `json:"ram_free_actual"`
			State     string
		}
		VM       float64 `json:"vm_ram"`
		Overhead float64
		Unit     string
	}](t, given)
	want := decode[struct {
		Uncontended float64 `json:"uncontended_free"`
		Contended   float64 `json:"contended_free"`
		Needed      float64
		Passes      bool
	}](t, expect)
	if g.Unit != "GiB" || g.Node.State != "running" {
		t.Fatalf("unit %q, state %q", g.Unit, g.Node.State)
	}
	node := cluster.Node{ID: "n1", Name: "n1", Settings: cluster.NodeSettings{
		RAMRatio: &g.Node.Ratio, Overhead: ptr(gibibytes(g.Overhead)),
	}}
	vms := []cluster.VM{{
		ID: "u1", Holder: "n1", Spec: cluster.VMSpec{Memory: gibibytes(g.Node.Allocated)}, StartedAt: noon.Add(-time.Hour),
	}}
	facts := cluster.NodeFacts{Memory: gibibytes(g.Node.Physical), Available: ptr(gibibytes(g.Node.Free))}
	got := placeOn(node, facts, vms, gibibytes(g.VM))
	if got.Admitted != want.Passes {
		t.Errorf("admitted %t, want %t: %+v", got.Admitted, want.Passes, got.Constraints)
	}
	for name, available := range map[string]float64{"memory-promised": want.Uncontended, "memory-physical": want.Contended} {
		one := got.Constraints[slices.IndexFunc(got.Constraints, func(c ConstraintResult) bool { return c.Constraint == name })]
		gib := float64(units.GiB)
		if !near(*one.Available/gib, available) || !near(*one.Needed/gib, want.Needed) {
			t.Errorf("%s: %v of %v, want %v of %v", name, *one.Available/gib, *one.Needed/gib, available, want.Needed)
		}
	}
}

func runConstraintStates(t *testing.T, given, expect json.RawMessage) {
	states := decode[struct{ States []string }](t, given).States
	passes := decode[struct{ Passes []bool }](t, expect).Passes
	ours := map[string]struct {
		liveness    cluster.Liveness
		maintenance bool
	}{
		"running":     {cluster.Up, false},
		"maintenance": {cluster.Up, true},
		"error":       {cluster.Degraded, false},
		"stopped":     {cluster.Unreachable, false},
		"recovery":    {cluster.Suspect, false},
	}
	for i, state := range states {
		one, known := ours[state]
		if !known {
			t.Fatalf("unknown state %q", state)
		}
		facts := cluster.NodeFacts{Memory: 64 * units.GiB, Available: ptr(60 * units.GiB), Liveness: one.liveness}
		got := placeOn(cluster.Node{ID: "n1", Name: "n1", Maintenance: one.maintenance}, facts, nil, units.GiB)
		if got.Admitted != passes[i] {
			t.Errorf("%s: admitted %t, want %t", state, got.Admitted, passes[i])
		}
	}
}
