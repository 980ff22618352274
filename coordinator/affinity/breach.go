package affinity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// Breach is one rule of a group that does not hold.
type Breach struct {
	Group     string // ID
	GroupName string
	Scope     Scope
	Rule      model.Rule
	VMs       []string // IDs that break it, ascending; of VMs that should be together: all that run
	Nodes     []string // IDs of the nodes where they break it, ascending
	Text      string   // in words: "web-1 and web-2 are both on hv1"
}

// Breaches lists the broken rules of the groups: hard ones first, then by the group's name, rules for nodes before rules for
// VMs. VMs that should be together break their rule when they are on more than one node. VMs that should be apart break it
// when two are on one node. Each VM on a wrong node breaks a rule for nodes (SEMANTICS.md, "Broken groups"). Soft rules
// count. VMs that do not run break nothing.
func Breaches(groups []model.Group, where Where, names Names) []Breach {
	groups = byName(groups)
	var hard, soft []Breach
	for i := range groups {
		for _, scope := range []Scope{OfNodes, OfVMs} {
			breach, broken := breachOf(&groups[i], scope, where, names)
			switch {
			case !broken:
			case breach.Rule.Enforcing:
				hard = append(hard, breach)
			default:
				soft = append(soft, breach)
			}
		}
	}
	return append(hard, soft...)
}

func breachOf(g *model.Group, scope Scope, where Where, names Names) (Breach, bool) {
	breach := Breach{Group: g.ID, GroupName: g.Name, Scope: scope, Rule: g.VMsRule}
	breaking := breaksVMs
	if scope == OfNodes {
		breach.Rule, breaking = nodesRule(g), breaksNodes
	}
	if !breach.Rule.Enabled() {
		return Breach{}, false
	}
	shares := breaking(g, sharesOf(g.VMs, where))
	if len(shares) == 0 {
		return Breach{}, false
	}
	for _, s := range shares {
		breach.VMs, breach.Nodes = append(breach.VMs, s.vms...), append(breach.Nodes, s.node)
	}
	slices.Sort(breach.VMs)
	breach.Text = breachText(g, scope, shares, names)
	return breach, true
}

// share is the part of some VMs that is on one node.
type share struct {
	node string
	vms  []string // ascending, unless somebody has sorted them otherwise
}

// sharesOf splits the VMs that run by node.
func sharesOf(vms []string, where Where) []share {
	byNode := map[string][]string{}
	for _, vm := range vms {
		if node, runs := where[vm]; runs {
			byNode[node] = append(byNode[node], vm)
		}
	}
	shares := make([]share, 0, len(byNode))
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		shares = append(shares, share{node, byNode[node]})
	}
	return shares
}

// breaksVMs is the shares that break the group's rule for VMs.
func breaksVMs(g *model.Group, shares []share) []share {
	if g.VMsRule.Polarity == model.Negative {
		return slices.DeleteFunc(shares, func(s share) bool { return len(s.vms) < 2 })
	}
	if len(shares) < 2 {
		return nil
	}
	return shares
}

// breaksNodes is the shares that break the group's rule for nodes.
func breaksNodes(g *model.Group, shares []share) []share {
	return slices.DeleteFunc(shares, func(s share) bool { return onRight(g, s.node) })
}

// onRight tells whether the group's rule for nodes lets its VMs be on a node.
func onRight(g *model.Group, node string) bool {
	return has(g.Nodes, node) == (g.NodesRule.Polarity == model.Positive)
}

func breachText(g *model.Group, scope Scope, shares []share, names Names) string {
	shares = slices.Clone(shares)
	slices.SortStableFunc(shares, func(a, b share) int { return cmp.Compare(len(b.vms), len(a.vms)) })
	var parts []string
	for i, s := range shares {
		if i == mostNamed-1 && len(shares) > mostNamed {
			parts = append(parts, "others are on "+count(len(shares)-i, "more node"))
			break
		}
		are := is(len(s.vms))
		if scope == OfVMs && g.VMsRule.Polarity == model.Negative {
			are = "are all"
			if len(s.vms) == 2 {
				are = "are both"
			}
		}
		parts = append(parts, fmt.Sprintf("%s %s on %s", names.list(s.vms), are, names(s.node)))
	}
	text := strings.Join(parts, "; ")
	if scope == OfVMs {
		return text
	}
	if g.NodesRule.Polarity == model.Positive {
		return fmt.Sprintf("%s, and should be on %s", text, series(names.words(g.Nodes), "or"))
	}
	return text + ", and should not be there"
}
