package affinity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/coordinator/model"
)

func TestLint(t *testing.T) {
	for name, c := range map[string]struct {
		groups []string
		want   string
	}{
		"more nodes than VMs": {groups: []string{"web: a - b - c - d"}},
		"six VMs apart on five nodes": {
			groups: []string{"web: a - b - c - d - e - f"},
			want: `
warning too-few-nodes: groups [web] ties [] VMs [a b c d e f] nodes [h1 h2 h3 h4 h5]
  group web keeps a, b, c, d, e and f apart: 6 VMs apart on 5 nodes cannot hold
  let more nodes take VMs, or take VMs out of group web
`,
		},
		"as many VMs as nodes": {
			groups: []string{"web: a - b - c - d - e"},
			want: `
warning no-spare-node: groups [web] ties [] VMs [a b c d e] nodes [h1 h2 h3 h4 h5]
  group web keeps a, b, c, d and e apart: 5 VMs apart on 5 nodes hold now, not after one node fails
  let more nodes take VMs, or take VMs out of group web
`,
		},
		"as many VMs as there are of the group's nodes": {
			groups: []string{"web: a - b - c on h1 h2 h3 h6", "db: b off h4"},
			want: `
warning no-spare-node: groups [web] ties [] VMs [a b c] nodes [h1 h2 h3]
  group web keeps a, b and c apart and on h1, h2, h3 or h6: 3 VMs apart on 3 nodes hold now, not after h1, h2 or h3 fails
  give the VMs more nodes, or take some of them out of group web
`,
		},
		"softly apart on too few nodes": {
			groups: []string{"web: a -? b on h1 h6"},
			want: `
warning too-few-nodes: groups [web] ties [] VMs [a b] nodes [h1]
  group web wants a and b apart and keeps them on h1 or h6: 2 VMs apart on 1 node cannot hold
  give the VMs more nodes, or take some of them out of group web
warning single-node: groups [web] ties [] VMs [a b] nodes [h1]
  group web keeps a and b on h1 or h6: only h1 may have them, so it cannot be emptied, and they are down when it fails
  give the VMs one more node, or make the rule soft
`,
		},
		"bound to one node": {
			groups: []string{"rack: a b on h1", "soft: c on? h1"},
			want: `
warning single-node: groups [rack] ties [] VMs [a b] nodes [h1]
  group rack keeps a and b on h1: only h1 may have them, so it cannot be emptied, and they are down when it fails
  give the VMs one more node, or make the rule soft
`,
		},
		"bound to a node in maintenance": {
			groups: []string{"rack: a on h6"},
			want: `
warning no-node-left: groups [rack] ties [] VMs [a] nodes [h6]
  group rack keeps a on h6: h6 takes no VMs now
  make the node take VMs, or add another one to the group
`,
		},
		"off every node": {
			groups: []string{"none: a off h1 h2 h3 h4 h5"},
			want: `
warning no-node-left: groups [none] ties [] VMs [a] nodes [h1 h2 h3 h4 h5]
  group none keeps a off h1, h2, h3, h4 and h5: these are all the nodes that take VMs
  give the VMs other nodes, or make one of the rules soft
`,
		},
		"tied VMs on different nodes": {
			groups: []string{"A: a + b", "B: a on h1 h2", "C: b on h3"},
			want: `
warning no-node-left: groups [B C] ties [A] VMs [a b] nodes [h1 h2 h3]
  group B keeps a on h1 or h2, group C keeps b on h3, and group A keeps a and b together: no node is left
  give the VMs other nodes, or make one of the rules soft
`,
		},
		"what is an error already is not told again": {groups: []string{"A: a on h1", "B: a off h1"}},
		"rules that hold one by one": {
			groups: []string{"A: a - b on h1 h2", "B: b - c", "C: c - a on h1 h2"},
			want: `
warning cannot-hold: groups [A B C] ties [] VMs [a b c] nodes [h1 h2]
  group A keeps a and b apart, group B keeps b and c apart, group C keeps a and c apart, group A keeps a and b on h1 or h2, and group C keeps a and c on h1 or h2: each of this could hold by itself, but not all of it at once
  let more nodes take VMs, take VMs out of a group, or make one of the rules soft
`,
		},
		"rules that hold one by one when a node fails": {
			groups: []string{"A: a - b on h1 h2 h3", "B: b - c", "C: c - a on h1 h2 h3"},
			want: `
warning no-spare-node: groups [A B C] ties [] VMs [a b c] nodes [h1 h2 h3]
  group A keeps a and b apart, group B keeps b and c apart, group C keeps a and c apart, group A keeps a and b on h1, h2 or h3, and group C keeps a and c on h1, h2 or h3: all of it holds now, not after h1, h2 or h3 fails
  let more nodes take VMs, take VMs out of a group, or make one of the rules soft
`,
		},
		"a rule of no nodes": {
			groups: []string{"typo: a on"},
			want: `
warning names-no-node: groups [typo] ties [] VMs [a] nodes []
  group typo has a rule of nodes and no node: the rule does nothing
  add nodes to the group, or disable its rule of nodes
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, told(Lint(parse(t, c.groups...), rooms("h1 h2 h3 h4 h5 h6*"), same)), c.want)
		})
	}
}

func TestLintNamesTheLabelThatNoNodeHas(t *testing.T) {
	groups := parse(t, "ssd: a on")
	groups[0].NodeLabels = ids("fast ssd")
	got := Lint(groups, rooms("h1 h2"), same)
	if len(got) != 1 || got[0].Next != "give a node the label fast or ssd, or disable the group's rule of nodes" {
		t.Errorf("told %s", told(got))
	}
}

func TestLintSaysNothingOfAClusterWithoutNodes(t *testing.T) {
	if got := Lint(parse(t, "web: a - b on h1"), rooms("h1*"), same); len(got) != 0 {
		t.Errorf("told %s", told(got))
	}
}

// A thousand nodes and as many VMs apart are no matter of minutes.
func TestLintOfLargeGroups(t *testing.T) {
	var vms, nodes, room []string
	for i := range 1000 {
		vms, nodes, room = append(vms, fmt.Sprintf("v%04d", i)), append(nodes, fmt.Sprintf("h%04d", i)), append(room, fmt.Sprintf("h%04d", i))
	}
	groups := []model.Group{{
		Name: "wide", VMs: vms, Nodes: nodes,
		VMsRule:   model.Rule{Polarity: model.Negative, Enforcing: true},
		NodesRule: model.Rule{Polarity: model.Positive, Enforcing: true},
	}}
	for _, c := range []struct{ least, kind string }{{"h0000", NoSpareNode}, {"h0001", TooFewNodes}} {
		got := Lint(groups, rooms(strings.Join(room[slices.Index(room, c.least):], " ")), same)
		if len(got) != 1 || got[0].Kind != c.kind {
			t.Errorf("from %s on: %s, want %s", c.least, told(got), c.kind)
		}
	}
}

// every is all placements of the VMs on the nodes.
func every(vms, nodes []string, yield func(Where) bool) {
	where := Where{}
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(vms) {
			return yield(where)
		}
		for _, node := range nodes {
			where[vms[i]] = node
			if !place(i + 1) {
				return false
			}
		}
		return true
	}
	place(0)
}

// keeps tells whether a placement of all VMs keeps the rules, hard ones or all: the words of the rules, one by one.
func keeps(groups []model.Group, where Where, softToo bool) bool {
	for _, g := range groups {
		if g.VMsRule.Enabled() && (softToo || g.VMsRule.Enforcing) {
			for _, a := range g.VMs {
				for _, b := range g.VMs {
					if a < b && (where[a] == where[b]) != (g.VMsRule.Polarity == model.Positive) {
						return false
					}
				}
			}
		}
		if g.NodesRule.Enabled() && (softToo || g.NodesRule.Enforcing) && len(g.Nodes) > 0 {
			for _, a := range g.VMs {
				if slices.Contains(g.Nodes, where[a]) != (g.NodesRule.Polarity == model.Positive) {
					return false
				}
			}
		}
	}
	return true
}

// holds tries all placements.
func holds(groups []model.Group, vms, nodes []string, softToo bool) bool {
	found := false
	every(vms, nodes, func(where Where) bool {
		found = keeps(groups, where, softToo)
		return !found
	})
	return found
}

func kindsOf(conflicts []Conflict, which func(c *Conflict) bool) []string {
	var found []string
	for i := range conflicts {
		if which(&conflicts[i]) {
			found = append(found, conflicts[i].Kind)
		}
	}
	return found
}

// What is told agrees with trying every placement: rules that cannot hold are found, and only they; and so are those that do
// not survive a node.
func TestLintAgreesWithEveryPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vms := ids("a b c d e")
		nodes := ids("h1 h2 h3 h4")[:rapid.IntRange(1, 4).Draw(t, "nodes")]
		groups := drawGroups(t, vms, ids("h1 h2 h3 h4 h5"), false)
		conflicts, lint := Conflicts(groups, same), Lint(groups, rooms(strings.Join(nodes, " ")+" h5*"), same)
		errors := kindsOf(conflicts, func(c *Conflict) bool { return c.Severity == Error })
		cannot := kindsOf(lint, func(c *Conflict) bool {
			soft := c.Kind == TooFewNodes && strings.Contains(c.Text, " wants ") && slices.ContainsFunc(groups, func(g model.Group) bool {
				return slices.Contains(c.Groups, g.Name) && g.VMsRule.Soft()
			})
			return !soft && slices.Contains([]string{NoNodeLeft, TooFewNodes, CannotHold}, c.Kind)
		})
		possible := holds(groups, vms, nodes, false)
		if possible != (len(errors)+len(cannot) == 0) {
			t.Fatalf("hard rules hold: %v, errors %v, lint %v\n%s%s", possible, errors, cannot, told(conflicts), told(lint))
		}
		if len(errors) > 0 && holds(groups, vms, ids("h1 h2 h3 h4 h5 h6"), false) {
			t.Fatalf("an error, and with more nodes it holds:\n%s", told(conflicts))
		}
		if !possible || len(nodes) == 1 {
			return
		}
		survives := true
		for i := range nodes {
			survives = survives && holds(groups, vms, slices.Delete(slices.Clone(nodes), i, i+1), false)
		}
		fragile := kindsOf(lint, func(c *Conflict) bool { return c.Kind == NoSpareNode || c.Kind == SingleNode })
		if survives != (len(fragile) == 0) {
			t.Fatalf("survives any node's failure: %v, lint %v\n%s", survives, fragile, told(lint))
		}
	})
}
