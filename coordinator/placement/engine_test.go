package placement

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
	"berth/shared/units"
)

// prepared is an engine in the middle of a random decision.
func prepared(t *rapid.T) (*Engine, Choice) {
	s, request, seed := draws(t)
	view := s.view()
	if request.Current != "" {
		view = view.Without(request.VM, request.Current)
	}
	engine, err := NewEngine(s.policy())
	if err != nil {
		t.Fatal(err)
	}
	return engine, engine.Choose(view.Columns(model.DefaultCluster), noon, &request, seed)
}

// The fast forms are other ways to compute the same, to the last bit.
func TestFastFormsAgreeWithTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, _ := prepared(t)
		fastFormsAgree(t, e)
	})
	// On a site of several pieces, the last of them short.
	columns := fleet(700, 2)
	columns.CPUPressure, columns.Count = same(columns.Len(), 12.5), same(columns.Len(), 3)
	for node := range columns.IDs {
		if node%7 == 0 {
			columns.TelemetryAt.Set(node, noon.Add(-time.Hour).UnixNano())
		}
		if node%5 == 0 {
			columns.Known[node] &^= view.KnowsLoad
		}
	}
	columns.Derive()
	for _, wanted := range []float64{0.5, 1.75} { // within 1 of all values, and not
		request := askedOf(true)
		for k := range request.SystemKeys {
			if !model.IsSpecialKey(request.SystemKeys[k].Name) {
				request.SystemKeys[k].Value = wanted
			}
		}
		request.SystemKeys = append(request.SystemKeys, request.SystemKeys[1:]...)
		e := newEngine(t, policies.Default())
		if e.Choose(columns, noon, request, 1).Candidates == 0 {
			t.Fatal("no node is a candidate: little is compared")
		}
		fastFormsAgree(t, e)
	}
}

// fastFormsAgree fails unless the fast forms give the same as the rules, for what the engine has just decided.
func fastFormsAgree(t rapid.TB, e *Engine) {
	for node, out := range e.out {
		refused := slices.ContainsFunc(e.constraints, func(c constraint.Constraint) bool { return !c.Check(&e.input, node).Passed })
		if out != refused {
			t.Fatalf("node %d: out %t, by its checks %t", node, out, refused)
		}
	}
	for _, c := range constraint.All() {
		if c.Sweep == nil {
			continue
		}
		out := make([]bool, len(e.out))
		c.Sweep(&e.input, out)
		for node := range out {
			if out[node] == c.Check(&e.input, node).Passed {
				t.Fatalf("%s, node %d: swept out %t", c.Name, node, out[node])
			}
		}
	}
	for _, w := range weigher.All() {
		scores := slices.Repeat([]float64{math.NaN()}, len(e.out))
		w.Scores(&e.input, scores)
		for node, score := range scores {
			if one := w.Weigh(&e.input, node, nil); math.Float64bits(one) != math.Float64bits(score) {
				t.Fatalf("%s, node %d: %v by column, %v alone", w.Name, node, score, one)
			}
		}
	}
}

// The one pass over the nodes finds what the order of all of them has first.
func TestTheChoiceIsTheFirstInTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, _ := prepared(t)
		e.request.IfBetter = 0
		choice := e.choose()
		ordered := e.order()
		if diff := cmp.Diff(e.choiceOf(ordered), choice); diff != "" && choice.Node >= 0 {
			t.Fatalf("(-in order +chosen):\n%s", diff)
		}
		if want := e.choiceOf(ordered); want.FailedPhase != choice.FailedPhase || want.System != choice.System {
			t.Fatalf("%+v, in order %+v", choice, want)
		}
	})
}

// What a large decision keeps of the candidates are the first of all, however it finds them.
func TestTheForemostAreTheFirstInTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, choice := prepared(t)
		most := rapid.IntRange(0, len(e.out)+1).Draw(t, "most")
		found := keeper{e, choice}.foremost(most)
		var want []int
		for _, one := range e.order() {
			if len(want) < most {
				want = append(want, one.node)
			}
		}
		if !slices.Equal(found, want) {
			t.Fatalf("%v are found, %v are the first", found, want)
		}
	})
}

// What fits is counted as if each VM were decided on from the beginning.
func TestCapacityIsThatOfWholeDecisions(t *testing.T) {
	compare := func(t rapid.TB, columns *view.Columns, request Request, policy policies.Policy, most int) (placed int) {
		first, err := NewEngine(policy)
		if err != nil {
			t.Fatal(err)
		}
		got := first.Capacity(columns, noon, request, most)
		engine, _ := NewEngine(policy)
		columns, resident, counts := columns.Clone(), key.ResidentsOf(request.CustomerKeys), map[string]int{}
		for ; placed < most; placed++ {
			choice := engine.Choose(columns, noon, &request, uint64(placed)+1)
			if choice.Node < 0 {
				break
			}
			counts[columns.IDs[choice.Node]]++
			columns.Charge(choice.Node, another(columns, &request, resident, placed+1))
		}
		for _, node := range got.Nodes {
			if node.Count != counts[node.Node] {
				t.Fatalf("%d on %s, by whole decisions %d", node.Count, node.Node, counts[node.Node])
			}
		}
		return placed
	}
	rapid.Check(t, func(t *rapid.T) {
		s, request, _ := draws(t)
		request.Current = ""
		if rapid.Bool().Draw(t, "without customer keys") {
			request.CustomerKeys = nil
		}
		compare(t, s.view().Columns(model.DefaultCluster), request, s.policy(), rapid.IntRange(1, 60).Draw(t, "most"))
	})
	for _, name := range policies.Builtins() {
		policy, _ := policies.Builtin(name, model.DefaultSettings())
		request := *askedOf(false)
		request.Memory = 100 * units.GiB
		if placed := compare(t, fleet(20, 0), request, policy, 500); placed < 20 || placed == 500 {
			t.Errorf("%s: %d VMs fit on 20 nodes", name, placed)
		}
	}
}

// A rule that has no fast form simply works.
func TestARuleWithoutAFastFormCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, want := prepared(t)
		e.roomy = false
		for c := range e.constraints {
			e.constraints[c].Sweep = nil
		}
		e.gated.Sweep = nil
		e.weighers = slices.Clone(e.weighers)
		for w := range e.weighers {
			e.weighers[w].Sweep = nil
		}
		if diff := cmp.Diff(want, e.choose()); diff != "" {
			t.Fatalf("(-fast +slow):\n%s", diff)
		}
	})
}

func TestADecisionAllocatesNothingPerNode(t *testing.T) {
	for _, n := range []int{10, 1000} {
		columns, request := fleet(n, 3), askedOf(true)
		engine := newEngine(t, policies.Default())
		allocations := testing.AllocsPerRun(20, func() {
			if engine.Choose(columns, noon, request, 1).Node < 0 {
				t.Fatal("no node fits")
			}
		})
		if allocations > 10 {
			t.Errorf("%d nodes: %v allocations", n, allocations)
		}
	}
}

// An engine goes from one cluster to another, and from a large one to a small one and back.
func TestAnEngineIsUsedAgain(t *testing.T) {
	used := newEngine(t, policies.Default())
	for _, n := range []int{50, 3, 200, 1} {
		columns, request := fleet(n, 2), askedOf(n > 3)
		got, want := used.Choose(columns, noon, request, 5), newEngine(t, policies.Default()).Choose(columns, noon, request, 5)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d nodes (-fresh +used):\n%s", n, diff)
		}
	}
}

// Columns may be built without a view, and charged: what was there is not there any more.
func TestAChargedVMTakesItsRoom(t *testing.T) {
	columns := emptyNodes("node1", "node2").Clone()
	engine := newEngine(t, policies.Default())
	request := &Request{Memory: 40 * units.GiB, SystemKeys: specials()}
	first := engine.Choose(columns, noon, request, 1)
	columns.Charge(first.Node, view.Allocation{Memory: request.Memory, VCPUs: 4})
	second := engine.Choose(columns, noon, request, 1)
	columns.Charge(second.Node, view.Allocation{Memory: request.Memory, VCPUs: 4})
	if third := engine.Choose(columns, noon, request, 1); first.Node == second.Node || third.Node != -1 ||
		third.FailedPhase != PhaseConstraint {
		t.Errorf("%+v, %+v, %+v", first, second, third)
	}
}
