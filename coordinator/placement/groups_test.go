package placement

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
)

// whereabouts are the nodes that the VMs of a scenario are on, and those that they will be on when all moves are over.
func (s *scenario) whereabouts() (now, then map[string][]string) {
	now, then = make(map[string][]string), make(map[string][]string)
	for _, vm := range s.vms {
		now[vm.ID], then[vm.ID] = []string{vm.Holder}, []string{vm.Holder}
		for _, held := range s.reservations {
			if held.VM == vm.ID {
				now[vm.ID], then[vm.ID] = []string{vm.Holder, held.Node}, []string{held.Node}
			}
		}
	}
	return now, then
}

// broken names a hard rule that placing VMs on a node would break; it is worked out from the records alone, the slow way.
func (s *scenario) broken(request *Request, node string) string {
	placed := append([]string{request.VM}, request.along()...)
	now, then := s.whereabouts()
	var groups []model.Group
	for i := range s.groups {
		groups = append(groups, model.GroupOf(&s.groups[i], model.DefaultCluster))
	}
	vms := slices.Clone(s.vms)
	for _, id := range []string{"new", "u0", "u1", "u2", "u3", "u4"} { // those that do not run
		if !slices.ContainsFunc(vms, func(vm model.VM) bool { return vm.ID == id }) {
			stopped := model.VM{ID: id}
			if id == request.VM {
				stopped.Labels = request.Labels
			}
			vms = append(vms, stopped)
		}
	}
	groups = view.Expand(groups, vms, s.nodes)
	tied := slices.Clone(placed) // what hard positive rules make one
	var allowed []string
	for range groups {
		for _, g := range groups {
			if g.VMsRule.Hard() && g.VMsRule.Polarity == model.Positive && slices.ContainsFunc(
				g.VMs, func(vm string) bool { return slices.Contains(tied, vm) },
			) {
				tied = append(tied, g.VMs...)
			}
		}
	}
	for _, vm := range tied {
		if !slices.Contains(placed, vm) {
			allowed = append(allowed, then[vm]...)
		}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, node) {
		return "together"
	}
	for _, g := range groups {
		members := 0
		for _, vm := range g.VMs {
			if slices.Contains(placed, vm) {
				members++
			}
		}
		if members == 0 {
			continue
		}
		if g.VMsRule.Hard() && g.VMsRule.Polarity == model.Negative {
			for _, vm := range g.VMs {
				if members > 1 || !slices.Contains(placed, vm) && slices.Contains(now[vm], node) {
					return "apart in " + g.Name
				}
			}
		}
		if on := slices.Contains(g.Nodes, node); g.NodesRule.Hard() && len(g.Nodes) > 0 && on != (g.NodesRule.Polarity == model.Positive) {
			return "nodes of " + g.Name
		}
	}
	return ""
}

// Hard rules refuse what they forbid and nothing else, whatever is on its way, comes along or is merged.
func TestHardRulesAreWhatTheRecordsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		if request.Current != "" { // the VM's own reservation would make it come and go at once
			s.reservations = slices.DeleteFunc(s.reservations, func(r model.Reservation) bool { return r.VM == request.VM })
		}
		for _, node := range Explain(Place(s.view(), request, s.policy(), seed)).Nodes {
			want := s.broken(&request, node.Node)
			refused := slices.ContainsFunc(node.Constraints, func(c ConstraintResult) bool {
				return !c.Passed && (c.Constraint == "node-affinity" || c.Constraint == "vm-affinity")
			})
			if refused != (want != "") {
				t.Fatalf("%s: refused %t, by the records broken: %q", node.Name, refused, want)
			}
		}
	})
}

// Columns with a move carried out in them are those of a view whose records say that it was: every decision comes out alike.
func TestPlannedStateIsTheStateAfterwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		s.reservations = nil
		engine, err := NewEngine(s.policy())
		if err != nil {
			t.Fatal(err)
		}
		planned := s.view().Columns(model.DefaultCluster).Clone()
		for i := range s.vms {
			vm := &s.vms[i]
			target := rapid.IntRange(0, planned.Len()-1).Draw(t, "target")
			from, _ := planned.Index(vm.Holder)
			if from == target {
				continue
			}
			held, _ := s.view().Node(vm.Holder).Holds(vm.ID)
			planned.Move(from, target, held)
			vm.Holder, vm.StartedAt = planned.IDs[target], noon
		}
		afterwards := s.view().Columns(model.DefaultCluster)
		if diff := gocmp.Diff(afterwards.Figures, planned.Figures); diff != "" {
			t.Fatalf("figures (-afterwards +planned):\n%s", diff)
		}
		for i, group := range afterwards.Groups.All() {
			if diff := gocmp.Diff(afterwards.Presences(i, nil), planned.Presences(i, nil)); diff != "" {
				t.Fatalf("%s (-afterwards +planned):\n%s", group.Name, diff)
			}
		}
		request.Current, request.Leave, request.IfBetter = "", false, 0
		want, got := engine.Choose(afterwards, noon, &request, seed), engine.Choose(planned, noon, &request, seed)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("(-afterwards +planned):\n%s", diff)
		}
	})
}

// The weight of broken rules is in the order of the descending lists of their priorities.
func TestBrokenRulesWeighAsTheListsOfTheirPriorities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &rule.Input{Columns: emptyNodes("a", "b")}
		lists := make([][]float64, 2)
		for i := range rapid.IntRange(1, 8).Draw(t, "groups") {
			group := rule.Membership{
				Group: fmt.Sprint("g", i), Priority: float64(rapid.IntRange(1, 4).Draw(t, "priority")), Placing: 1,
				Nodes: model.Rule{Polarity: model.Negative},
			}
			for node := range lists {
				if rapid.Bool().Draw(t, "broken") {
					group.On = append(group.On, int32(node))
					lists[node] = append(lists[node], group.Priority)
				}
			}
			in.Groups = append(in.Groups, group)
		}
		in.Settle()
		for node := range lists {
			slices.SortFunc(lists[node], func(a, b float64) int { return cmp.Compare(b, a) })
		}
		affinity, _ := weigher.ByName("node-affinity")
		a, b := -affinity.Weigh(in, 0, nil), -affinity.Weigh(in, 1, nil)
		if cmp.Compare(a, b) != slices.Compare(lists[0], lists[1]) {
			t.Fatalf("%v weighs %v, %v weighs %v", lists[0], a, lists[1], b)
		}
	})
}

// A VM in no group costs nothing more where there are groups of others.
func TestGroupsOfOthersSayNothing(t *testing.T) {
	s := parseScenario(t, `
node node1 memory=16G cpus=4 available=15G load=0
node node2 memory=16G cpus=4 available=15G load=0
vm a on=node1 memory=1G vcpus=1
group g vm=a vm=b vms=negative hard_vms nodes=positive node=node1
start new memory=1G vcpus=1
`)
	e, columns := newEngine(t, policies.Default()), s.view().Columns(model.DefaultCluster)
	e.Choose(columns, noon, &s.asked[0].request, 1)
	if e.input.Groups != nil || len(e.scorers) != 1 {
		t.Errorf("%v have a say, and %d weighers", e.input.Groups, len(e.scorers))
	}
	if allocations := testing.AllocsPerRun(20, func() { e.Choose(columns, noon, &s.asked[0].request, 1) }); allocations > 3 {
		t.Errorf("%v allocations", allocations)
	}
}
