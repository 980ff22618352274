package placement

import (
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/placement/selector"
	"berth/coordinator/placement/weigher"
)

// RankRow is one weigher of the policy in the table of a decision.
type RankRow struct {
	Weigher string     `json:"weigher"`
	Factor  float64    `json:"factor"`
	Cells   []RankCell `json:"cells"` // by rank of the node in the decision, the same nodes in every row
	// Silent tells that all nodes of the table are the same to the weigher. It was left out of the scores, or asked by Prefer.
	Silent bool `json:"silent,omitempty"`
}

// RankCell is what a weigher gave one node.
type RankCell struct {
	Node string `json:"node"` // ID
	Name string `json:"name"`
	// Rank is what the selector made of the weight: a rank, higher is better; of the selectors of percentages the percentage,
	// lower is better.
	Rank   float64 `json:"rank"`
	Weight float64 `json:"weight"` // as the weigher gave it
}

// RankTable is the table of a decision of a policy that combines several weighers, one row for each of them; nil where there
// was nothing to combine: customer keys alone decide in a band by their own score. It explains the decision first.
func RankTable(d Decision) []RankRow { return Explain(d).Ranks }

// ranksOf is the table of the nodes that competed with the winner. Where no node won there is none, and none where one weigher
// alone had something to say in a band, or among nodes of which some are not known any more.
func ranksOf(e *Engine, choice Choice, ordered []candidate, omitted int) []RankRow {
	alone := len(e.scorers) == 1 && len(e.weighers) > 1 && e.rounds() == nil && omitted == 0
	if choice.Node < 0 || len(e.scorers) < 2 && !alone {
		return nil
	}
	var group []candidate
	for i := range ordered {
		if compareGroup(&ordered[0], &ordered[i]) == 0 {
			group = append(group, ordered[i])
		}
	}
	rows := make([]RankRow, len(e.weighers))
	for w := range e.weighers {
		asked := &e.weighers[w]
		s := slices.IndexFunc(e.scorers, func(scorer weigher.Weigher) bool { return scorer.Name == asked.Name })
		rows[w] = RankRow{Weigher: asked.Name, Factor: e.factors[w], Silent: s < 0, Cells: make([]RankCell, len(group))}
		shares, scores := e.rank(asked, group)
		for i := range group {
			one, cell := &group[i], &rows[w].Cells[i]
			cell.Node, cell.Name = e.input.Columns.IDs[one.node], e.input.Name(one.node)
			cell.Rank, cell.Weight = shares[i], shown(asked, scores[i])
			if s >= 0 && len(one.parts) > 0 { // as it counted, among nodes that the record may have left out
				cell.Rank, cell.Weight = one.parts[s].share, shown(asked, one.parts[s].raw)
			}
		}
	}
	return rows
}

// rank is what the policy's selector makes of the scores that one weigher gives some nodes, and these scores.
func (e *Engine) rank(asked *weigher.Weigher, nodes []candidate) (shares, scores []float64) {
	all := make([]float64, len(e.out))
	asked.Scores(&e.input, all)
	given := selector.Given{Scores: make([]float64, len(nodes)), Weight: asked.Weight}
	for i := range nodes {
		given.Scores[i] = all[nodes[i].node]
		if e.selector.Bounded {
			given.Maximum = append(given.Maximum, asked.Maximum(&e.input, nodes[i].node))
		}
	}
	shares = make([]float64, len(nodes))
	e.selector.Share(&given, shares)
	return shares, given.Scores
}

// RankCSV is the table as oVirt's rank selector logs it, with semicolons: a line that names the nodes, then a line for each
// weigher of the policy with its factor and for each node the rank and the weight, also for one to which all nodes are the same. It
// is empty where there is no table.
func RankCSV(d Decision) string {
	rows := RankTable(d)
	if len(rows) == 0 {
		return ""
	}
	head := []string{"*", "factor"}
	for _, cell := range rows[0].Cells {
		head = append(head, cell.Name, "")
	}
	lines := []string{strings.Join(head, ";")}
	for _, row := range rows {
		line := []string{row.Weigher, plain(row.Factor)}
		for _, cell := range row.Cells {
			line = append(line, plain(cell.Rank), plain(cell.Weight))
		}
		lines = append(lines, strings.Join(line, ";"))
	}
	return strings.Join(lines, "\n") + "\n"
}

// plain prints a figure as it is, for machines.
func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
