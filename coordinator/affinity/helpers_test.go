package affinity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
)

// parse reads groups as people write them on a whiteboard: "name: vms rule, vms rule nodes, !priority". Members stand
// beside each other; their rule of VMs is "+" or "-" between them, that of nodes "on" or "off". Soft rules have a "?".
//
//	web: a - b - c        a, b and c apart, hard
//	web: a +? b on h1 h2  a and b together, soft, on h1 or h2, hard
//	web: a off? h1 !2     a off h1, soft, of priority 2
func parse(t interface{ Fatalf(string, ...any) }, texts ...string) []model.Group {
	var groups []model.Group
	for i, text := range texts {
		name, rest, found := strings.Cut(text, ":")
		if !found {
			t.Fatalf("%q has no name", text)
		}
		g := model.Group{
			ID: fmt.Sprintf("g%d", i), Name: name, Priority: model.DefaultPriority,
			VMsRule: model.Rule{Polarity: model.Disabled}, NodesRule: model.Rule{Polarity: model.Disabled},
		}
		members := &g.VMs
		for _, word := range strings.Fields(rest) {
			plain, soft := strings.CutSuffix(word, "?")
			rule := model.Rule{Enforcing: !soft}
			switch plain {
			case "+", "-":
				rule.Polarity = map[string]model.Polarity{"+": model.Positive, "-": model.Negative}[plain]
				g.VMsRule = rule
			case "on", "off":
				rule.Polarity = map[string]model.Polarity{"on": model.Positive, "off": model.Negative}[plain]
				g.NodesRule, members = rule, &g.Nodes
			default:
				if _, err := fmt.Sscanf(word, "!%g", &g.Priority); err != nil {
					*members = append(*members, word)
				}
			}
		}
		slices.Sort(g.VMs)
		slices.Sort(g.Nodes)
		groups = append(groups, g)
	}
	return groups
}

func ids(text string) []string { return strings.Fields(text) }

// at is "a@h1 b@h2".
func at(text string) Where {
	where := Where{}
	for _, one := range strings.Fields(text) {
		vm, node, _ := strings.Cut(one, "@")
		where[vm] = node
	}
	return where
}

func same(id string) string { return id }

func rooms(nodes string) []Room {
	var all []Room
	for _, node := range strings.Fields(nodes) {
		name, stays := strings.CutSuffix(node, "*") // in maintenance
		all = append(all, Room{Node: name, Takes: !stays})
	}
	return all
}

// told is a conflict as the tests compare it.
func told(conflicts []Conflict) string {
	var b strings.Builder
	for _, c := range conflicts {
		fmt.Fprintf(
			&b, "%s %s: groups %v ties %v VMs %v nodes %v\n  %s\n  %s\n", c.Severity, c.Kind, c.Groups, c.Ties, c.VMs, c.Nodes, c.Text,
			c.Next,
		)
	}
	return b.String()
}

func golden(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// drawGroups are some groups of few VMs and nodes.
func drawGroups(t *rapid.T, vms, nodes []string, hardOnly bool) []model.Group {
	rule := func(what string) model.Rule {
		return model.Rule{
			Polarity:  rapid.SampledFrom([]model.Polarity{model.Disabled, model.Positive, model.Negative}).Draw(t, what),
			Enforcing: hardOnly || rapid.Bool().Draw(t, what+" enforcing"),
		}
	}
	some := func(of []string, what string) []string {
		return slices.Sorted(maps.Keys(rapid.MapOfN(rapid.SampledFrom(of), rapid.Bool(), 0, len(of)).Draw(t, what)))
	}
	var groups []model.Group
	for i := range rapid.IntRange(0, 5).Draw(t, "groups") {
		groups = append(groups, model.Group{
			ID: fmt.Sprintf("g%d", i), Name: fmt.Sprintf("group-%d", i), VMs: some(vms, "vms"), Nodes: some(nodes, "nodes"),
			VMsRule: rule("vms rule"), NodesRule: rule("nodes rule"),
			Priority: rapid.SampledFrom([]float64{1, 1, 2, 0.5}).Draw(t, "priority"),
		})
	}
	return groups
}
