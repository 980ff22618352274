package explanation

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// byWhatDecides orders what several weighers gave by how much it parts the best node from the next one, and leaves what is alike as it is.
func byWhatDecides(ranks []*berthv1.RankRow) []*berthv1.RankRow {
	parts := func(rank *berthv1.RankRow) float64 {
		if len(rank.GetCells()) < 2 {
			return 0
		}
		return math.Abs(rank.GetFactor() * (rank.GetCells()[0].GetRank() - rank.GetCells()[1].GetRank()))
	}
	return slices.SortedStableFunc(slices.Values(ranks), func(a, b *berthv1.RankRow) int { return cmp.Compare(parts(b), parts(a)) })
}

// Ranks writes what each weigher gave each candidate, and what that comes to: a line for each weigher, and for each node
// the rank and, in brackets, the weight that it was ranked by.
func Ranks(p *term.Page, d *berthv1.Decision, full bool) {
	p.Blank()
	nodes := d.GetRankNodes()
	if len(d.GetRanks()) == 0 {
		p.Line("no ranks: one weigher alone decided by its own score, or none did")
		return
	}
	p.Line("ranks (and weights), what decides most first; a node's total is the sum of rank x factor")
	shown := nodes
	if !full {
		shown = nodes[:min(len(nodes), term.Brief)]
	}
	silent := false
	totals := make([]float64, len(shown))
	rows := make([][]string, 0, len(d.GetRanks())+1)
	for _, rank := range byWhatDecides(d.GetRanks()) {
		silent = silent || rank.GetSilent()
		row := []string{rank.GetWeigher() + mark(rank), units.Figure(rank.GetFactor())}
		for i, cell := range rank.GetCells()[:min(len(rank.GetCells()), len(shown))] {
			row = append(row, fmt.Sprintf("%s (%s)", units.Figure(cell.GetRank()), units.Figure(cell.GetWeight())))
			if !rank.GetSilent() {
				totals[i] += rank.GetFactor() * cell.GetRank()
			}
		}
		rows = append(rows, row)
	}
	sum := []string{"total", ""}
	for _, total := range totals {
		sum = append(sum, units.Figure(total))
	}
	p.Indented("  ", append([]string{"WEIGHER", "FACTOR"}, shown...), append(rows, sum))
	if silent {
		p.Line("  * the same to all of these nodes, and not in the total")
	}
	if left := len(nodes) - len(shown); left > 0 {
		p.Line("  and %s; --full shows all", term.Count(left, "more candidate"))
	}
}

// mark is behind the name of a weigher to which all nodes are the same.
func mark(rank *berthv1.RankRow) string {
	if rank.GetSilent() {
		return " *"
	}
	return ""
}
