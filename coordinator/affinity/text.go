package affinity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/model"
)

// mostNamed is how many of a list are named; the rest is a number.
const mostNamed = 8

// and is "a", "a and b" or "a, b and c". Of a long list it has the first ones and the number of the others.
func and(words []string) string { return series(words, "and") }

func series(words []string, last string) string {
	switch n := len(words); {
	case n == 0:
		return ""
	case n == 1:
		return words[0]
	case n > mostNamed:
		return strings.Join(words[:mostNamed-1], ", ") + " " + last + " " + strconv.Itoa(n-mostNamed+1) + " more"
	default:
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
}

// list is the names of IDs, sorted by name, because people do not know the IDs.
func (n Names) list(ids []string) string { return and(n.words(ids)) }

func (n Names) words(ids []string) []string {
	words := make([]string, 0, len(ids))
	for _, id := range ids {
		words = append(words, n(id))
	}
	slices.Sort(words)
	return words
}

// is is the verb for a number of things.
func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// count is "1 node" or "3 nodes".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// verb is what a rule does: a hard one keeps, a soft one wants.
func verb(rule model.Rule) string {
	if rule.Enforcing {
		return "keeps"
	}
	return "wants"
}

// place is where a rule for nodes has its VMs.
func (n Names) place(g *model.Group) string {
	if g.NodesRule.Polarity == model.Negative {
		return "off " + n.list(g.Nodes)
	}
	return "on " + series(n.words(g.Nodes), "or")
}

// saysOfNodes is what a group's rule for nodes says about some of its VMs.
func (n Names) saysOfNodes(g *model.Group, vms []string) string {
	return fmt.Sprintf("group %s %s %s %s", g.Name, verb(g.NodesRule), n.list(vms), n.place(g))
}

// saysOfVMs is what a group's rule for VMs says about some of them.
func (n Names) saysOfVMs(g *model.Group, vms []string) string {
	how := "together"
	if g.VMsRule.Polarity == model.Negative {
		how = "apart"
	}
	return fmt.Sprintf("group %s %s %s %s", g.Name, verb(g.VMsRule), n.list(vms), how)
}
