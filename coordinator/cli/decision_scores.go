package cli

import (
	"slices"
	"strconv"

	berthv1 "berth/shared/gen/berth/v1"
)

// scores writes a line for each candidate, and in full one for each term of its score. Decisions of the first release have
// one score and no rounds.
func scores(p *page, candidates []*berthv1.DecisionNode, show detail) {
	total := len(candidates)
	if !show.full {
		candidates = candidates[:min(total, briefNodes)]
	}
	has := func(what func(*berthv1.DecisionNode) bool) bool { return slices.ContainsFunc(candidates, what) }
	rounds := has(func(n *berthv1.DecisionNode) bool {
		return n.GetBand() > 0 || n.GetSystemScore() != 0 || n.GetCustomerScore() != 0
	})
	headings := []string{"RANK", "NODE"}
	switch {
	case rounds:
		headings = append(headings, "ROUND", "SYSTEM", "CUSTOMER")
	case has(func(n *berthv1.DecisionNode) bool { return n.GetScore() != 0 }):
		headings = append(headings, "SCORE")
	}
	scored := len(headings) > 2 // without keys, for instance where the VM's disk says where, there is no score
	if show.wide {
		headings = append(headings, "TIER", "NODE-ID")
	}
	head := len(headings)
	noted := has(func(n *berthv1.DecisionNode) bool {
		return slices.ContainsFunc(n.GetTerms(), func(t *berthv1.ScoreTerm) bool { return t.GetNote() != "" })
	})
	if show.full {
		headings = append(headings, termHeadings(show.wide, noted)...)
	}
	var rows [][]string
	for _, node := range candidates {
		row := []string{position(node.GetRank()), nodeName(node)}
		switch {
		case rounds:
			row = append(row, position(node.GetBand()), number(node.GetSystemScore()), number(node.GetCustomerScore()))
		case scored:
			row = append(row, number(node.GetScore()))
		}
		if show.wide {
			row = append(row, position(node.GetTier()), or(node.GetNodeId(), none))
		}
		if !show.full || len(node.GetTerms()) == 0 {
			rows = append(rows, row)
			continue
		}
		for _, term := range node.GetTerms() {
			rows = append(rows, append(row, termCells(term, show.wide)...))
			row = make([]string, head) // said once
		}
	}
	p.indented("  ", headings, rows)
	if left := total - len(candidates); left > 0 {
		p.line("  and %s; --full shows all", count(left, "more candidate"))
	}
}

// position prints a rank, a round or a tier. Nodes that got none have 0.
func position(n int32) string {
	if n == 0 {
		return none
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

func termCells(term *berthv1.ScoreTerm, wide bool) []string {
	cells := []string{
		or(term.GetKey(), term.GetWeigher()), optionalNumber(term.Wanted), number(term.GetRaw()), optionalNumber(term.Proximity),
		number(term.GetWeight()), position(term.GetCount()), number(term.GetContribution()),
	}
	if wide {
		cells = append(cells, or(term.GetWeigher(), none), or(term.GetClass(), none), or(term.GetLevel(), none))
	}
	return append(cells, term.GetNote())
}
