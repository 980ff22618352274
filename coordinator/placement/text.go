package placement

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"berth/coordinator/placement/rule"
)

// Text renders a decision for logs, simulations and tests: what was asked, what came of it and why, and a line for each
// node with its scores or what refused it. FullText adds what each score is made of. Both explain the decision first.
func Text(d Decision) string { return text(Explain(d), false) }

// FullText is Text with every term of every score.
func FullText(d Decision) string { return text(Explain(d), true) }

func text(d Decision, full bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (%v, %s)", d.Request.Purpose, d.Request.VMName, d.Request.Memory, count(d.Request.VCPUs, "vCPU"))
	fmt.Fprintf(&b, " by policy %s, seed %d\n", d.Policy, d.Seed)
	if d.Outcome == Placed {
		fmt.Fprintf(&b, "placed on %s: %s\n", d.WinnerName, d.Reason)
	} else { // the reason begins with what came of it
		fmt.Fprintf(&b, "%s\n", d.Reason)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	if d.Counterfactual != "" {
		fmt.Fprintf(&b, "otherwise: %s\n", d.Counterfactual)
	}
	if d.Order != "" {
		fmt.Fprintf(&b, "order %s", d.Order)
		if d.Prefer != "" {
			fmt.Fprintf(&b, "; prefer %s", d.Prefer)
		}
		fmt.Fprintf(&b, "; gate %s; select %s\n", d.Gate, d.Selector)
	}
	writeNodes(&b, d.Nodes, full)
	if d.Omitted > 0 {
		fmt.Fprintf(&b, "  and %s\n", count(d.Omitted, "more node"))
	}
	return b.String()
}

func writeNodes(b *strings.Builder, nodes []NodeResult, full bool) {
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
		} else {
			fmt.Fprintf(table, "  %d\t%s\t", node.Rank, name)
			if tiers {
				fmt.Fprintf(table, "tier %d\t", node.Tier)
			}
			if bands {
				fmt.Fprintf(table, "round %d\tsystem %s\t", node.Band, figure(node.SystemScore))
			}
			fmt.Fprintf(table, "score %s\n", figure(node.Score))
		}
		if full {
			writeTerms(table, node.Terms)
		}
	}
	_ = table.Flush() // a strings.Builder does not fail
}

// writeTerms shows of each term the node's value and the VM's, and what proximity times weight times count adds.
func writeTerms(table *tabwriter.Writer, terms []Term) {
	for i := range terms {
		term := &terms[i]
		switch {
		case term.Note != "":
			fmt.Fprintf(table, "  \t    %s %s\t%s\n", term.Weigher, term.Key, term.Note)
		case term.Proximity == nil && term.Weight == 0: // the only one
			fmt.Fprintf(table, "  \t    %s\t%s\n", term.Weigher, figure(term.Raw))
		case term.Proximity == nil: // one of several
			fmt.Fprintf(table, "  \t    %s\t%s: %s x %s = %s\n", term.Weigher, figure(term.Raw),
				figure(term.Share), figure(term.Weight), figure(term.Contribution))
		default:
			instances := ""
			if term.Count > 0 {
				instances = " x " + count(term.Count, "VM")
			}
			fmt.Fprintf(table, "  \t    %s %s\t%s, wanted %s: %s x %s%s = %s\n", term.Weigher, term.Key,
				figure(term.Raw), figure(term.Wanted), figure(*term.Proximity), figure(term.Weight), instances, figure(term.Contribution))
		}
	}
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
