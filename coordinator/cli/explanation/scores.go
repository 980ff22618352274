package explanation

import (
	"cmp"
	"slices"
	"strconv"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Scores writes a line for each candidate, and in full one for each term of its score. Decisions of the first release have
// one score and no rounds.
func Scores(p *term.Page, candidates []*berthv1.DecisionNode, show Detail) {
	total := len(candidates)
	if !show.Full {
		candidates = candidates[:min(total, term.Brief)]
	}
	has := func(what func(*berthv1.DecisionNode) bool) bool { return slices.ContainsFunc(candidates, what) }
	rounds := has(func(n *berthv1.DecisionNode) bool {
		return n.GetBand() > 0 || n.GetSystemScore() != 0 || n.GetCustomerScore() != 0
	})
	headings := []string{"RANK", "NODE"} // and then what decides, in the order in which it does
	tiers := show.Wide || has(func(n *berthv1.DecisionNode) bool { return n.GetTier() > 1 })
	if tiers {
		headings = append(headings, "TIER")
	}
	wished := has(func(n *berthv1.DecisionNode) bool { return n.GetWish() > 0 })
	if wished {
		headings = append(headings, "WISH")
	}
	// Without keys, for instance where the VM's disk says where, there is no score.
	scored := !rounds && has(func(n *berthv1.DecisionNode) bool { return n.GetScore() != 0 })
	switch {
	case rounds:
		headings = append(headings, "ROUND", "SYSTEM", "CUSTOMER")
	case scored:
		headings = append(headings, "SCORE")
	}
	if show.Wide {
		headings = append(headings, "NODE-ID")
	}
	head := len(headings)
	noted := has(func(n *berthv1.DecisionNode) bool {
		return slices.ContainsFunc(n.GetTerms(), func(t *berthv1.ScoreTerm) bool { return t.GetNote() != "" })
	})
	if show.Full {
		headings = append(headings, termHeadings(show.Wide, noted)...)
	}
	var rows [][]string
	for _, node := range candidates {
		row := []string{position(node.GetRank()), nodeName(node)}
		if tiers {
			row = append(row, position(node.GetTier()))
		}
		if wished {
			row = append(row, position(node.GetWish()))
		}
		switch {
		case rounds:
			row = append(row, position(node.GetBand()), units.Figure(node.GetSystemScore()), units.Figure(node.GetCustomerScore()))
		case scored:
			row = append(row, units.Figure(node.GetScore()))
		}
		if show.Wide {
			row = append(row, cmp.Or(node.GetNodeId(), term.None))
		}
		if !show.Full || len(node.GetTerms()) == 0 {
			rows = append(rows, row)
			continue
		}
		for _, part := range node.GetTerms() {
			rows = append(rows, append(row, termCells(part, show.Wide)...))
			row = make([]string, head) // said once
		}
	}
	p.Indented("  ", headings, rows)
	if left := total - len(candidates); left > 0 {
		p.Line("  and %s; --full shows all", term.Count(left, "more candidate"))
	}
}

// position prints a rank, a round or a tier. Nodes that got none have 0.
func position(n int32) string {
	if n == 0 {
		return term.None
	}
	return strconv.Itoa(int(n))
}

func termHeadings(wide, noted bool) []string {
	headings := []string{"TERM", "VM-VALUE", "NODE-VALUE", "PROXIMITY", "WEIGHT", "COUNT", "CONTRIBUTION"}
	if wide {
		headings = append(headings, "WEIGHER", "CLASS", "LEVEL")
	}
	if noted {
		headings = append(headings, "NOTE")
	}
	return headings
}

func termCells(part *berthv1.ScoreTerm, wide bool) []string {
	cells := []string{
		cmp.Or(
			part.GetKey(), part.GetWeigher(),
		), term.OptionalNumber(part.Wanted), units.Figure(part.GetRaw()), term.OptionalNumber(part.Proximity),
		units.Figure(part.GetWeight()), position(part.GetCount()), units.Figure(part.GetContribution()),
	}
	if wide {
		cells = append(cells, cmp.Or(part.GetWeigher(), term.None), cmp.Or(part.GetClass(), term.None), cmp.Or(part.GetLevel(), term.None))
	}
	return append(cells, part.GetNote())
}
