package affinity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
)

func drawWhere(t *rapid.T, vms, nodes []string) Where {
	where := Where{}
	for _, vm := range vms {
		if node := rapid.SampledFrom(append(slices.Clone(nodes), "")).Draw(t, vm); node != "" {
			where[vm] = node
		}
	}
	return where
}

func TestMerged(t *testing.T) {
	groups := parse(t, "1: A + B", "2: B + C", "3: D + E", "4: A + D", "5: F + G", "6: G +? H", "7: H - I", "8: J +")
	want := [][]string{ids("A B C D E"), ids("F G")}
	if diff := gocmp.Diff(want, Merged(groups)); diff != "" {
		t.Error(diff)
	}
}

// Two VMs are in one set exactly if a chain of hard positive groups leads from one to the other.
func TestMergedIsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vms := ids("a b c d e f g")
		groups := drawGroups(t, vms, ids("h1"), false)
		tied := map[[2]string]bool{}
		for _, g := range groups {
			for _, a := range g.VMs {
				for _, b := range g.VMs {
					tied[[2]string{a, b}] = tied[[2]string{a, b}] || g.VMsRule.Hard() && g.VMsRule.Polarity == model.Positive
				}
			}
		}
		for _, via := range vms {
			for _, a := range vms {
				for _, b := range vms {
					if tied[[2]string{a, via}] && tied[[2]string{via, b}] {
						tied[[2]string{a, b}] = true
					}
				}
			}
		}
		in := map[string]int{}
		for i, set := range Merged(groups) {
			for _, vm := range set {
				if in[vm] != 0 {
					t.Fatalf("%s is in two sets", vm)
				}
				in[vm] = i + 1
			}
		}
		for _, a := range vms {
			for _, b := range vms {
				if a != b && tied[[2]string{a, b}] != (in[a] != 0 && in[a] == in[b]) {
					t.Fatalf("%s and %s are tied: %v, sets %v", a, b, tied[[2]string{a, b}], Merged(groups))
				}
			}
		}
	})
}

func TestBreaches(t *testing.T) {
	groups := parse(
		t, "together: a + b + c", "apart: a -? b - d on? h2 h3", "off: c off h2", "stopped: x + y", "fine: a + b on h1", "nothing: a on",
	)
	groups[1].VMsRule.Enforcing = true
	var b strings.Builder
	for _, one := range Breaches(groups, at("a@h1 b@h1 c@h2 d@h1 x@h1"), func(id string) string { return "the-" + id }) {
		fmt.Fprintf(&b, "%s %s %s %v %v %v: %s\n", one.Group, one.GroupName, one.Scope, one.Rule, one.VMs, one.Nodes, one.Text)
	}
	golden(t, b.String(), `
g1 apart vms {negative true} [a b d] [h1]: the-a, the-b and the-d are all on the-h1
g2 off nodes {negative true} [c] [h2]: the-c is on the-h2, and should not be there
g0 together vms {positive true} [a b c] [h1 h2]: the-a and the-b are on the-h1; the-c is on the-h2
g1 apart nodes {positive false} [a b d] [h1]: the-a, the-b and the-d are on the-h1, and should be on the-h2 or the-h3
`)
	pair := Breaches(parse(t, "web: a - b - c - d"), at("a@h1 b@h1 c@h2 d@h2"), same)
	if len(pair) != 1 || pair[0].Text != "a and b are both on h1; c and d are both on h2" {
		t.Errorf("told %+v", pair)
	}
}

func TestABreachOnManyNodesIsToldShortly(t *testing.T) {
	got := Breaches(parse(t, "web: a + b + c + d + e + f + g + h + i"), at("a@1 b@2 c@3 d@4 e@5 f@6 g@7 h@8 i@9"), same)
	want := "a is on 1; b is on 2; c is on 3; d is on 4; e is on 5; f is on 6; g is on 7; others are on 2 more nodes"
	if len(got) != 1 || got[0].Text != want {
		t.Errorf("told %+v, want %s", got, want)
	}
}

// A placement has breaches exactly if it does not keep all rules.
func TestBreachesAreWhatIsNotKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vms, nodes := ids("a b c d"), ids("h1 h2 h3")
		groups := drawGroups(t, vms, nodes, false)
		where := drawWhere(t, vms, nodes)
		running := slices.Clone(groups)
		for i := range running {
			running[i].VMs = slices.DeleteFunc(slices.Clone(groups[i].VMs), func(vm string) bool { return where[vm] == "" })
		}
		breaches := Breaches(groups, where, same)
		if keeps(running, where, true) != (len(breaches) == 0) {
			t.Fatalf("%v: %+v", where, breaches)
		}
		hard := slices.ContainsFunc(breaches, func(b Breach) bool { return b.Rule.Enforcing })
		if keeps(running, where, false) == hard {
			t.Fatalf("%v: %+v", where, breaches)
		}
	})
}

func TestCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		where  string
		fixed  string
		want   string
	}{
		"hard before soft, nodes before VMs": {
			groups: []string{"A: a +? b", "B: c on? h3", "C: d - e", "D: f off h1"},
			where:  "a@h1 b@h2 c@h1 d@h2 e@h2 f@h1",
			want:   "f for D, d for C, e for C, c for B, a for A, b for A",
		},
		"who breaks most rules of nodes first": {
			groups: []string{"A: a b c off h1", "B: b on h2", "C: b c on h3", "D: d off? h1"},
			where:  "a@h1 b@h1 c@h1 d@h1",
			want:   "b for A, b for B, b for C, c for A, c for C, a for A, d for D",
		},
		"of those who break as many, the higher priority": {
			groups: []string{"A: a off? h1", "B: b off? h1 !3", "C: c off? h1 !2"},
			where:  "a@h1 b@h1 c@h1",
			want:   "b for B, c for C, a for A",
		},
		"together: the smallest share first": {
			groups: []string{"A: a + b + c + d + e + f"},
			where:  "a@h1 b@h1 c@h1 d@h3 e@h2 f@h2",
			want:   "d for A, e for A, f for A, a for A, b for A, c for A",
		},
		"together: where one cannot leave, none does": {
			groups: []string{"A: a + b + c"}, where: "a@h1 b@h1 c@h2", fixed: "c", want: "a for A, b for A",
		},
		"together: all on their way are counted where they go": {
			groups: []string{"A: a + b"}, where: "a@h1 b@h1",
		},
		"apart: the largest share first": {
			groups: []string{"A: a - b - c - d - e"}, where: "a@h1 b@h1 c@h2 d@h2 e@h2", want: "c for A, d for A, e for A, a for A, b for A",
		},
		"apart: the others leave who cannot": {
			groups: []string{"A: a - b"}, where: "a@h1 b@h1", fixed: "a", want: "b for A",
		},
		"rules of nodes do not count those who cannot leave": {
			groups: []string{"A: a b off h1"}, where: "a@h1 b@h1", fixed: "a", want: "b for A",
		},
		"groups that are as one": {
			groups: []string{"A: a + b", "B: b + c", "C: x + y"},
			where:  "a@h1 b@h1 c@h2 x@h1 y@h2",
			want:   "c for B, a for B, b for B, x for C, y for C",
		},
		"larger groups first, then those of later VMs": {
			groups: []string{"A: a - b", "B: c - d", "C: e - f - g"},
			where:  "a@h1 b@h1 c@h2 d@h2 e@h3 f@h3",
			want:   "e for C, f for C, c for B, d for B, a for A, b for A",
		},
		"soft groups of higher priority first": {
			groups: []string{"A: a -? b -? x !2", "B: c -? d !1.5", "C: e +? f !3"},
			where:  "a@h1 b@h1 c@h2 d@h2 e@h3 f@h2",
			want:   "e for C, f for C, a for A, b for A, c for B, d for B",
		},
		"a VM that breaks a rule of each kind": {
			groups: []string{"A: a - b off h1"}, where: "a@h1 b@h1", want: "a for A, b for A, a for A, b for A",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fixed := func(vm string) bool { return slices.Contains(ids(c.fixed), vm) }
			var got []string
			for _, one := range Candidates(parse(t, c.groups...), at(c.where), fixed, nil, same) {
				got = append(got, one.VM+" for "+one.Breach.GroupName)
			}
			if diff := gocmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCandidatesThatAreAlikeComeInTheCallersOrder(t *testing.T) {
	less := func(a, b string) int { return cmp.Compare(b, a) }
	var got []string
	for _, one := range Candidates(
		parse(t, "A: a - b - c", "B: x y off h1", "C: m + n"), at("a@h1 b@h1 c@h1 x@h1 y@h1 m@h1 n@h2"), nil, less, same,
	) {
		got = append(got, one.VM)
	}
	if diff := gocmp.Diff(ids("y x c b a n m"), got); diff != "" {
		t.Error(diff)
	}
}

func TestImproves(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		where  string
		first  Scope
		want   string // targets of a
	}{
		"nothing is soft":          {groups: []string{"A: a off h1"}, where: "a@h1"},
		"it does not run":          {groups: []string{"A: a on? h2"}, where: "b@h1"},
		"onto the group's node":    {groups: []string{"A: a on? h2"}, where: "a@h1", want: "h2"},
		"off the group's node":     {groups: []string{"A: a off? h1 h2"}, where: "a@h1", want: "h3"},
		"to more of its own":       {groups: []string{"A: a +? b +? c +? d"}, where: "a@h1 b@h2 c@h3 d@h3", want: "h2 h3"},
		"not to as many":           {groups: []string{"A: a +? b +? c"}, where: "a@h1 b@h1 c@h2"},
		"to where nobody is":       {groups: []string{"A: a -? b -? c"}, where: "a@h1 b@h1 c@h2", want: "h3"},
		"not into a smaller crowd": {groups: []string{"A: a -? b -? c -? d"}, where: "a@h1 b@h1 c@h1 d@h2", want: "h3"},
		"the higher priority decides": {
			groups: []string{"A: a on? h2 !2", "B: a on? h3", "C: a off? h2"}, where: "a@h1", want: "h2 h3",
		},
		"as many are broken": {groups: []string{"A: a on? h1", "B: a on? h2"}, where: "a@h1"},
		"nodes before VMs":   {groups: []string{"A: a on? h2", "B: a +? b"}, where: "a@h1 b@h1", first: OfNodes, want: "h2"},
		"VMs before nodes":   {groups: []string{"A: a on? h2", "B: a +? b"}, where: "a@h1 b@h1", first: OfVMs},
		"VMs where nodes make no difference": {
			groups: []string{"A: a on? h1 h2", "B: a +? b +? c"}, where: "a@h1 b@h2 c@h3", first: OfNodes, want: "h2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, target := range ids("h1 h2 h3") {
				if Improves(parse(t, c.groups...), "a", target, at(c.where), c.first) {
					got = append(got, target)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("better on %v, want %s", got, c.want)
			}
		})
	}
}

func TestRuleOf(t *testing.T) {
	yes, no := true, false
	soft := model.Rule{Polarity: model.Negative}
	off := model.Rule{Polarity: model.Disabled, Enforcing: true}
	for name, c := range map[string]struct {
		was                          model.Rule
		enabled, positive, enforcing *bool
		want                         model.Rule
	}{
		"nothing is said":            {was: soft, want: soft},
		"nothing is said of none":    {was: off, want: off},
		"only positive":              {was: off, positive: &yes, want: model.Rule{Polarity: model.Positive, Enforcing: true}},
		"negative and soft":          {was: off, positive: &no, enforcing: &no, want: soft},
		"enabled and nothing else":   {was: off, enabled: &yes, want: model.Rule{Polarity: model.Positive, Enforcing: true}},
		"harder than it was":         {was: soft, enforcing: &yes, want: model.Rule{Polarity: model.Negative, Enforcing: true}},
		"disabled wins and keeps":    {was: soft, enabled: &no, positive: &yes, enforcing: &yes, want: off},
		"enabled keeps the polarity": {was: soft, enabled: &yes, want: soft},
	} {
		if got := RuleOf(c.was, c.enabled, c.positive, c.enforcing); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// placer places as the rules alone say, where there is room for everything.
type placer struct {
	groups []model.Group
	nodes  []string
	where  Where
}

// may tells whether hard rules let a VM be on a node: those of nodes, and those of VMs as far as these run elsewhere
// (SEMANTICS.md, "Hard rules").
func (m *placer) may(vm, node string) bool {
	for _, set := range Merged(m.groups) {
		if !slices.Contains(set, vm) {
			continue
		}
		var homes []string
		for _, other := range set {
			if home := m.where[other]; other != vm && home != "" {
				homes = append(homes, home)
			}
		}
		if len(homes) > 0 && !slices.Contains(homes, node) {
			return false
		}
	}
	for _, g := range m.groups {
		if !slices.Contains(g.VMs, vm) {
			continue
		}
		if g.NodesRule.Hard() && len(g.Nodes) > 0 && slices.Contains(g.Nodes, node) != (g.NodesRule.Polarity == model.Positive) {
			return false
		}
		if g.VMsRule.Hard() && g.VMsRule.Polarity == model.Negative &&
			slices.ContainsFunc(g.VMs, func(other string) bool { return other != vm && m.where[other] == node }) {
			return false
		}
	}
	return true
}

// misplaced counts VMs that break hard rules of nodes, and pairs that break hard rules to be apart.
func (m *placer) misplaced() (nodes, pairs int) {
	for _, g := range m.groups {
		for _, a := range g.VMs {
			home := m.where[a]
			if home == "" {
				continue
			}
			if g.NodesRule.Hard() && len(g.Nodes) > 0 && slices.Contains(g.Nodes, home) != (g.NodesRule.Polarity == model.Positive) {
				nodes++
			}
			for _, b := range g.VMs {
				if a < b && m.where[b] == home && g.VMsRule.Hard() && g.VMsRule.Polarity == model.Negative {
					pairs++
				}
			}
		}
	}
	return nodes, pairs
}

// soft is how far soft rules are kept, priorities apart: VMs on right nodes and pairs as they should be, the highest first.
func (m *placer) soft() (nodes, vms []int) {
	levels := []float64{2, 1, 0.5}
	nodes, vms = make([]int, len(levels)), make([]int, len(levels))
	for _, g := range m.groups {
		level := slices.Index(levels, g.Priority)
		for _, a := range g.VMs {
			home := m.where[a]
			if home != "" && g.NodesRule.Soft() && len(g.Nodes) > 0 && slices.Contains(g.Nodes, home) == (g.NodesRule.Polarity == model.Positive) {
				nodes[level]++
			}
			for _, b := range g.VMs {
				if a < b && home != "" && m.where[b] != "" && g.VMsRule.Soft() && (m.where[b] == home) == (g.VMsRule.Polarity == model.Positive) {
					vms[level]++
				}
			}
		}
	}
	return nodes, vms
}

// targets are the nodes as a scheduler tries them: those with most of the VMs that hard rules tie to this one first.
func (m *placer) targets(vm string) []string {
	tied := map[string]int{}
	for _, set := range Merged(m.groups) {
		for _, other := range set {
			if slices.Contains(set, vm) {
				tied[m.where[other]]++
			}
		}
	}
	targets := slices.Clone(m.nodes)
	slices.SortStableFunc(targets, func(a, b string) int { return cmp.Compare(tied[b], tied[a]) })
	return targets
}

// step makes the first move that a candidate leads to. Who was moved for a hard rule is not moved for one again: what a
// cool-down does.
func (m *placer) step(t *rapid.T, moved map[string]bool) bool {
	for _, c := range Candidates(m.groups, m.where, nil, nil, same) {
		for _, target := range m.targets(c.VM) {
			if target == m.where[c.VM] || !m.may(c.VM, target) || c.Hard && moved[c.VM] {
				continue
			}
			if !c.Hard && !Improves(m.groups, c.VM, target, m.where, OfNodes) {
				continue
			}
			misplaced, pairs := m.misplaced()
			nodes, vms := m.soft()
			m.where[c.VM] = target
			misplacedNow, pairsNow := m.misplaced()
			nodesNow, vmsNow := m.soft()
			if misplacedNow > misplaced || pairsNow > pairs {
				t.Fatalf("%s to %s for %s: hard rules are broken more than before", c.VM, target, c.Breach.Text)
			}
			if better := cmp.Or(slices.Compare(nodesNow, nodes), slices.Compare(vmsNow, vms)); !c.Hard && better <= 0 {
				t.Fatalf("%s to %s for %s: soft rules are not kept better than before", c.VM, target, c.Breach.Text)
			}
			if c.Hard {
				moved[c.VM] = true
			}
			return true
		}
	}
	return false
}

// Repairs never break a hard rule of nodes, or one to be apart, more than it was; every soft one keeps the soft rules better;
// and they end.
func TestRepairsNeverMakeItWorseAndEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vms := ids("a b c d e")
		m := &placer{nodes: ids("h1 h2 h3 h4")}
		m.groups = drawGroups(t, vms, m.nodes, false)
		m.where = drawWhere(t, vms, m.nodes)
		moved := map[string]bool{}
		for steps := 0; m.step(t, moved); steps++ {
			if steps > 1000 {
				t.Fatal("no end")
			}
		}
	})
}

// VMs that only hard rules of each other tie, and that may be anywhere, all come together.
func TestRepairsBringTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vms := ids("a b c d e f")
		m := &placer{nodes: ids("h1 h2 h3")}
		m.groups = drawGroups(t, vms, m.nodes, true)
		for i := range m.groups {
			m.groups[i].VMsRule.Polarity, m.groups[i].NodesRule.Polarity = model.Positive, model.Disabled
		}
		m.where = drawWhere(t, vms, m.nodes)
		moved := map[string]bool{}
		for range 1000 {
			if !m.step(t, moved) {
				break
			}
		}
		if left := Breaches(m.groups, m.where, same); len(left) > 0 {
			t.Fatalf("%v: %+v", m.where, left)
		}
	})
}

func TestWorsens(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		where  string
		want   string // targets of a
	}{
		"nothing is soft":          {groups: []string{"A: a on h1"}, where: "a@h1"},
		"it does not run":          {groups: []string{"A: a on? h1"}, where: "b@h1"},
		"off the group's node":     {groups: []string{"A: a on? h1"}, where: "a@h1", want: "h2 h3"},
		"away from its own":        {groups: []string{"A: a +? b +? c"}, where: "a@h1 b@h1 c@h2", want: "h3"},
		"into a larger crowd":      {groups: []string{"A: a -? b -? c -? d"}, where: "a@h1 b@h1 c@h2 d@h2", want: "h2"},
		"not into a smaller crowd": {groups: []string{"A: a -? b -? c -? d"}, where: "a@h1 b@h1 c@h1 d@h2"},
		"to where one is":          {groups: []string{"A: a -? b"}, where: "a@h1 b@h2", want: "h2"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, target := range ids("h1 h2 h3") {
				if Worsens(parse(t, c.groups...), "a", target, at(c.where), OfNodes) {
					got = append(got, target)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("worse on %v, want %s", got, c.want)
			}
		})
	}
}

func TestInBoth(t *testing.T) {
	const ends = "; group apart: a and b are both on h1; hard rules come first, then rules for nodes"
	for _, test := range []struct {
		groups []string
		where  string
		want   []string
	}{
		{[]string{"rack: a on h2", "apart: a - b"}, "a@h1 b@h1", []string{
			"a: a rule for nodes and a rule for VMs ask to move it: group rack: a is on h1, and should be on h2" + ends,
		}},
		{[]string{"rack: a on? h2", "apart: a - b"}, "a@h1 b@h1", []string{ // the rule for VMs is asked first
			"a: a rule for nodes and a rule for VMs ask to move it: group rack: a is on h1, and should be on h2" + ends,
		}},
		{[]string{"rack: a on h2"}, "a@h1", nil},
		{[]string{"rack: a on h2", "far: a off h1"}, "a@h1", nil}, // two rules for nodes
		{[]string{"rack: a on h1", "apart: a - b"}, "a@h1 b@h1", nil},
		{[]string{"rack: a on h2", "apart: b - c"}, "a@h1 b@h1 c@h1", nil},
	} {
		var got []string
		for _, both := range InBoth(Candidates(parse(t, test.groups...), at(test.where), nil, nil, same)) {
			got = append(got, both.VM+": "+both.Text())
		}
		if diff := gocmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.groups, diff)
		}
	}
}
