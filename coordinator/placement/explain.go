package placement

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"berth/coordinator/placement/rule"
)

// Explain renders a decision for logs and tests: what was asked, what came of it and why, and a line for each node with
// what its score is made of or what refused it. The text needs nothing but the decision.
func Explain(d Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (%v, %s)", d.Request.Purpose, d.Request.VMName, d.Request.Memory, count(d.Request.VCPUs, "vCPU"))
	fmt.Fprintf(&b, " by policy %s, seed %d\n", d.Policy, d.Seed)
	if d.Outcome == Placed {
		fmt.Fprintf(&b, "placed on %s: %s\n", d.WinnerName, d.Reason)
	} else { // the reason begins with what came of it
		fmt.Fprintf(&b, "%s\n", d.Reason)
	}
	if d.Counterfactual != "" {
		fmt.Fprintf(&b, "otherwise: %s\n", d.Counterfactual)
	}
	if d.Order != "" {
		fmt.Fprintf(&b, "order %s; gate %s; select %s\n", d.Order, d.Gate, d.Selector)
	}
	explainNodes(&b, d.Nodes)
	if d.Omitted > 0 {
		fmt.Fprintf(&b, "  and %s\n", count(d.Omitted, "more node"))
	}
	return b.String()
}

func explainNodes(b *strings.Builder, nodes []NodeResult) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	tiers, bands := false, false
	for i := range nodes {
		tiers = tiers || nodes[i].Tier > 1
		bands = bands || nodes[i].Band > 0
	}
	for i := range nodes {
		node := &nodes[i]
		name := node.Name
		if node.Current {
			name += " (current)"
		}
		if !node.Admitted {
			fmt.Fprintf(table, "  -\t%s\trefused by %s\n", name, strings.Join(complaintsOf(node), "; "))
			continue
		}
		fmt.Fprintf(table, "  %d\t%s\t", node.Rank, name)
		if tiers {
			fmt.Fprintf(table, "tier %d\t", node.Tier)
		}
		if bands {
			fmt.Fprintf(table, "round %d\t", node.Band)
		}
		fmt.Fprintf(table, "%s\t%s\n", figure(node.Score), strings.Join(termTexts(node.Terms), "\t"))
	}
	_ = table.Flush() // a strings.Builder does not fail
}

// complaintsOf lists what refused a node, with the age of the input where there is one.
func complaintsOf(node *NodeResult) []string {
	var complaints []string
	for _, one := range node.Constraints {
		if one.Passed {
			continue
		}
		text := one.Constraint + ": " + one.Message
		if one.AgeSeconds != nil && one.Unit == string(rule.Bytes) {
			text += ", as of " + time.Duration(*one.AgeSeconds*float64(time.Second)).Round(100*time.Millisecond).String() + " ago"
		}
		complaints = append(complaints, text)
	}
	return complaints
}

// termTexts shows each term as value, proximity times weight, and what that adds to the score.
func termTexts(terms []Term) []string {
	texts := make([]string, 0, len(terms))
	for _, term := range terms {
		switch {
		case term.Note != "":
			texts = append(texts, fmt.Sprintf("%s: %s", term.Key, term.Note))
		case term.Proximity != nil:
			texts = append(texts, fmt.Sprintf("%s %s: %s x %s = %s",
				term.Key, figure(term.Raw), figure(*term.Proximity), figure(term.Weight), figure(term.Contribution)))
		default:
			texts = append(texts, fmt.Sprintf("%s %s: %s", term.Weigher, figure(term.Raw), figure(term.Contribution)))
		}
	}
	return texts
}
