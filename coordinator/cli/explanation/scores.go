package explanation

import (
	"cmp"
	"slices"
	"strconv"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
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
	headings := []string{"RANK", "NODE"}
	switch {
	case rounds:
		headings = append(headings, "ROUND", "SYSTEM", "CUSTOMER")
	case has(func(n *berthv1.DecisionNode) bool { return n.GetScore() != 0 }):
		headings = append(headings, "SCORE")
	}
	scored := len(headings) > 2 // without keys, for instance where the VM's disk says where, there is no score
	if show.Wide {
		headings = append(headings, "TIER", "NODE-ID")
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
		switch {
		case rounds:
			row = append(row, position(node.GetBand()), term.Number(node.GetSystemScore()), term.Number(node.GetCustomerScore()))
		case scored:
			row = append(row, term.Number(node.GetScore()))
		}
		if show.Wide {
			row = append(row, position(node.GetTier()), cmp.Or(node.GetNodeId(), term.None))
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
		), term.OptionalNumber(part.Wanted), term.Number(part.GetRaw()), term.OptionalNumber(part.Proximity),
		term.Number(part.GetWeight()), position(part.GetCount()), term.Number(part.GetContribution()),
	}
	if wide {
		cells = append(cells, cmp.Or(part.GetWeigher(), term.None), cmp.Or(part.GetClass(), term.None), cmp.Or(part.GetLevel(), term.None))
	}
	return append(cells, part.GetNote())
}
