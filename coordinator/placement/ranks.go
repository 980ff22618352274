package placement

import (
	"strconv"
	"strings"
)

// RankRow is one of several weighers in the table of a decision.
type RankRow struct {
	Weigher string     `json:"weigher"`
	Factor  float64    `json:"factor"`
	Cells   []RankCell `json:"cells"` // by rank of the node in the decision, the same nodes in every row
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

// RankTable is the table of a decision that several weighers made; nil where no more than one had anything to say. It
// explains the decision first.
func RankTable(d Decision) []RankRow { return Explain(d).Ranks }

// ranksOf is the table of the nodes that competed with the winner. Where no node won there is none.
func ranksOf(e *Engine, choice Choice, ordered []candidate) []RankRow {
	if choice.Node < 0 || len(e.scorers) < 2 {
		return nil
	}
	rows := make([]RankRow, len(e.scorers))
	for s := range e.scorers {
		rows[s] = RankRow{Weigher: e.scorers[s].Name, Factor: e.weights[s]}
		for i := range ordered {
			if one := &ordered[i]; compareGroup(&ordered[0], one) == 0 {
				rows[s].Cells = append(rows[s].Cells, RankCell{
					Node: e.input.Columns.IDs[one.node], Name: e.input.Name(one.node),
					Rank: one.parts[s].share, Weight: shown(&e.scorers[s], one.parts[s].raw),
				})
			}
		}
	}
	return rows
}

// RankCSV is the table as oVirt's rank selector logs it, with semicolons: a line that names the nodes, then a line for each
// weigher with its factor and for each node the rank and the weight. It is empty where there is no table.
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
