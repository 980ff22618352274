package explanation

import (
	"fmt"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// Ranks writes what each weigher gave each candidate, and what that comes to: a line for each weigher, and for each node
// the rank and, in brackets, the weight that it was ranked by.
func Ranks(p *term.Page, d *berthv1.Decision, full bool) {
	p.Blank()
	nodes := d.GetRankNodes()
	if len(d.GetRanks()) == 0 {
		p.Line("no ranks: one weigher alone decided by its own score, or none did")
		return
	}
	p.Line("ranks (and weights); a node's total is the sum of rank x factor")
	shown := nodes
	if !full {
		shown = nodes[:min(len(nodes), term.Brief)]
	}
	totals := make([]float64, len(shown))
	rows := make([][]string, 0, len(d.GetRanks())+1)
	for _, rank := range d.GetRanks() {
		row := []string{rank.GetWeigher(), term.Number(rank.GetFactor())}
		for i, cell := range rank.GetCells()[:min(len(rank.GetCells()), len(shown))] {
			row = append(row, fmt.Sprintf("%s (%s)", term.Number(cell.GetRank()), term.Number(cell.GetWeight())))
			totals[i] += rank.GetFactor() * cell.GetRank()
		}
		rows = append(rows, row)
	}
	sum := []string{"total", ""}
	for _, total := range totals {
		sum = append(sum, term.Number(total))
	}
	p.Indented("  ", append([]string{"WEIGHER", "FACTOR"}, shown...), append(rows, sum))
	if left := len(nodes) - len(shown); left > 0 {
		p.Line("  and %s; --full shows all", term.Count(left, "more candidate"))
	}
}
