package affinity

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
)

func TestConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		want   string
	}{
		"nothing in common": {groups: []string{"A: v1 on h1", "B: v2 off h1", "C: v3 - v4", "D: v4 + v5"}},
		"a rule without nodes is none": {
			groups: []string{"A: v1 on", "B: v1 off h1", "C: v1 on h2"},
		},
		"a disabled rule is none": {groups: []string{"A: v1 v2", "B: v1 - v2"}},
		"VMs apart may share what nodes are enough": {
			groups: []string{"rack: v1 - v2 - v3 on h1 h2 h3", "other: v1 v2 on h1 h2 h3"},
		},
		"demanded and forbidden": {
			groups: []string{"A: v1 v2 on h1", "B: v1 v2 v3 off h1"},
			want: `
error nodes-required-and-forbidden: groups [A B] ties [] VMs [v1 v2] nodes [h1]
  group A keeps v1 and v2 on h1, and group B keeps v1 and v2 off h1: no node is left
  take v1 and v2 out of one of the groups, or make the rule of nodes of one of them soft
`,
		},
		"demanded twice, and all that is left forbidden": {
			groups: []string{"A: v1 on h1 h2", "B: v1 on h2 h3", "C: v1 off h2"},
			want: `
error nodes-required-and-forbidden: groups [A B C] ties [] VMs [v1] nodes [h2]
  group A keeps v1 on h1 or h2, group B keeps v1 on h2 or h3, and group C keeps v1 off h2: no node is left
  take v1 out of one of the groups, or make the rule of nodes of one of them soft
warning different-nodes: groups [A B] ties [] VMs [v1] nodes [h1 h3]
  group A keeps v1 on h1 or h2, and group B keeps v1 on h2 or h3: only h2 is in all of them
  give the groups the same nodes, or keep the VMs in one of them
`,
		},
		"wanted and forbidden": {
			groups: []string{"A: v1 on? h1", "B: v1 off h1"},
			want: `
warning nodes-wanted-and-avoided: groups [A B] ties [] VMs [v1] nodes [h1]
  group A wants v1 on h1, and group B keeps v1 off h1: both cannot hold
  take v1, or h1, out of one of the groups
`,
		},
		"demanded and forbidden, and one is left": {
			groups: []string{"A: v1 on h1 h2", "B: v1 off h1"},
			want: `
warning nodes-wanted-and-avoided: groups [A B] ties [] VMs [v1] nodes [h1]
  group A keeps v1 on h1 or h2, and group B keeps v1 off h1: only h2 is left
  take v1, or h1, out of one of the groups
`,
		},
		"together, and one demands what the other must not have": {
			groups: []string{"A: v1 on h1", "B: v1 + v2", "C: v2 off h1"},
			want: `
warning together-against-nodes: groups [A C] ties [B] VMs [v1 v2] nodes [h1]
  group A keeps v1 on h1, group C keeps v2 off h1, and group B keeps v1 and v2 together: all of it cannot hold
  give the VMs the same nodes, or take one of them out of a group
`,
		},
		"together by way of others, on different nodes": {
			groups: []string{"A: v1 on h1", "B: v1 + v2", "C: v2 + v3", "D: v3 on h2"},
			want: `
warning together-against-nodes: groups [A D] ties [B C] VMs [v1 v3] nodes [h1 h2]
  group A keeps v1 on h1, group D keeps v3 on h2, group B keeps v1 and v2 together, and group C keeps v2 and v3 together: all of it cannot hold
  give the VMs the same nodes, or take one of them out of a group
`,
		},
		"softly together with what hard rules tie": {
			groups: []string{"A: v1 on h1", "B: v1 + v2", "C: v2 +? v3", "D: v3 off? h1"},
			want: `
warning together-against-nodes: groups [A D] ties [B C] VMs [v1 v3] nodes [h1]
  group A keeps v1 on h1, group D wants v3 off h1, group C wants v2 and v3 together, and group B keeps v1 and v2 together: all of it cannot hold
  give the VMs the same nodes, or take one of them out of a group
`,
		},
		"apart on one node": {
			groups: []string{"A: v1 on h1", "B: v1 - v2", "C: v2 on h1"},
			want: `
warning apart-against-nodes: groups [A C] ties [B] VMs [v1 v2] nodes [h1]
  group A keeps v1 on h1, group C keeps v2 on h1, and group B keeps v1 and v2 apart: 1 node for 2 VMs cannot hold
  give the VMs more nodes, or take some of them out of group B
`,
		},
		"three apart where two nodes are left": {
			groups: []string{"A: v1 - v2 - v3 - v4 on h1 h2 h3", "B: v1 v2 v3 off? h3"},
			want: `
warning nodes-wanted-and-avoided: groups [A B] ties [] VMs [v1 v2 v3] nodes [h3]
  group A keeps v1, v2 and v3 on h1, h2 or h3, and group B wants v1, v2 and v3 off h3: only h1 and h2 are left
  take v1, v2 and v3, or h3, out of one of the groups
warning apart-against-nodes: groups [A B] ties [A] VMs [v1 v2 v3] nodes [h1 h2]
  group A keeps v1, v2 and v3 on h1, h2 or h3, group B wants v1, v2 and v3 off h3, and group A keeps v1, v2 and v3 apart: 2 nodes for 3 VMs cannot hold
  give the VMs more nodes, or take some of them out of group A
`,
		},
		"different nodes": {
			groups: []string{"A: v1 v2 on h1 h2", "B: v1 on h1 h3", "C: v1 on? h1 h2"},
			want: `
warning different-nodes: groups [A B C] ties [] VMs [v1] nodes [h2 h3]
  group A keeps v1 on h1 or h2, group B keeps v1 on h1 or h3, and group C wants v1 on h1 or h2: only h1 is in all of them
  give the groups the same nodes, or keep the VMs in one of them
`,
		},
		"together and apart": {
			groups: []string{"A: v1 + v2", "B: v2 + v3", "C: v1 - v3 - v4", "D: v1 + v2 + v5", "E: v1 -? v2"},
			want: `
error together-and-apart: groups [A B C D] ties [] VMs [v1 v3] nodes []
  group A keeps v1 and v2 together, group B keeps v2 and v3 together, group D keeps v1, v2 and v5 together, and group C keeps v1 and v3 apart: both cannot hold
  take v1 and v3 out of one of the groups, or make one of the rules soft
warning together-and-apart: groups [A D E] ties [] VMs [v1 v2] nodes []
  group A keeps v1 and v2 together, group D keeps v1 and v2 together, and group E wants v1 and v2 apart: both cannot hold
  take v1 and v2 out of one of the groups
`,
		},
	} {
		t.Run(name, func(t *testing.T) { golden(t, told(Conflicts(parse(t, c.groups...), same)), c.want) })
	}
}

func TestManyNamesBecomeANumber(t *testing.T) {
	groups := parse(t, "all: a b c d e f g h i on h1 h2", "none: a b c d e f g h i off h1 h2")
	got := Conflicts(groups, func(id string) string { return "n-" + id })
	want := "group all keeps n-a, n-b, n-c, n-d, n-e, n-f, n-g and 2 more on n-h1 or n-h2, " +
		"and group none keeps n-a, n-b, n-c, n-d, n-e, n-f, n-g and 2 more off n-h1 and n-h2: no node is left"
	if len(got) != 1 || got[0].Text != want {
		t.Errorf("told %s, want %s", told(got), want)
	}
}

func TestManyRulesBecomeANumber(t *testing.T) {
	got := Conflicts(
		parse(t, "a: v on? x", "b: v on? x", "c: v on? x", "d: v on? x", "e: v on? x", "f: v on? x", "g: v on? x", "h: v on? x", "i: v off x"),
		same,
	)
	want := "group a wants v on x, group b wants v on x, group c wants v on x, group d wants v on x, group e wants v on x, " +
		"group f wants v on x, group g wants v on x, and 2 more rules say the like: both cannot hold"
	if len(got) != 1 || got[0].Text != want {
		t.Errorf("told %s, want %s", told(got), want)
	}
}

// Nothing that is told depends on the order in which the groups come.
func TestOrderOfGroupsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vms, nodes := ids("a b c d e"), ids("h1 h2 h3 h4")
		groups := drawGroups(t, vms, nodes, false)
		where := drawWhere(t, vms, nodes)
		all := func(groups []model.Group) []any {
			return []any{
				Conflicts(groups, same), Lint(groups, rooms("h1 h2 h3 h4*"), same), Breaches(groups, where, same), Merged(groups),
				Candidates(groups, where, nil, nil, same), Improves(groups, "a", "h2", where, OfNodes),
			}
		}
		before := all(groups)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		random.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		if diff := cmp.Diff(before, all(groups)); diff != "" {
			t.Fatal(diff)
		}
	})
}
