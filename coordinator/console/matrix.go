package console

import (
	"slices"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// mostRows is how many nodes a matrix shows: those that come first by rank, and then those that were refused.
const mostRows = 100

// matrix is a decision as a table: nodes down, rules across.
type matrix struct {
	Decision    *berthv1.Decision
	Constraints []string
	Weighers    []string
	Rows        []matrixRow
	Left        int // nodes that are not shown
}

type matrixRow struct {
	*berthv1.DecisionNode

	Rules []cell // as Constraints
	Terms []cell // as Weighers
}

// cell is what one rule says of one node. Text is empty where it was not asked.
type cell struct {
	Text, More string
	Refused    bool
}

// matrixOf makes the table of a decision; nil: there is none.
func matrixOf(d *berthv1.Decision) *matrix {
	if d == nil || len(d.GetNodes()) == 0 {
		return nil
	}
	m := &matrix{Decision: d}
	shown := d.GetNodes()
	if len(shown) > mostRows {
		shown, m.Left = shown[:mostRows], len(shown)-mostRows
	}
	for _, node := range shown {
		for _, rule := range node.GetConstraints() {
			if !slices.Contains(m.Constraints, rule.GetConstraint()) {
				m.Constraints = append(m.Constraints, rule.GetConstraint())
			}
		}
		for _, term := range node.GetTerms() {
			if name := termName(term); !slices.Contains(m.Weighers, name) {
				m.Weighers = append(m.Weighers, name)
			}
		}
	}
	for _, node := range shown {
		row := matrixRow{DecisionNode: node, Rules: make([]cell, len(m.Constraints)), Terms: make([]cell, len(m.Weighers))}
		for _, rule := range node.GetConstraints() {
			row.Rules[slices.Index(m.Constraints, rule.GetConstraint())] = cell{
				Text: verdict(rule), More: figures(rule), Refused: !rule.GetPassed(),
			}
		}
		for _, term := range node.GetTerms() {
			row.Terms[slices.Index(m.Weighers, termName(term))] = cell{
				Text: units.Figure(term.GetContribution()),
				More: "value " + units.Figure(term.GetRaw()) + weighed(term.GetWeight()) + noted(term.GetNote()),
			}
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// weighed is the weight of a term, in words. A weigher that orders by its value alone has none.
func weighed(weight float64) string {
	if weight == 0 {
		return ""
	}
	return ", weight " + units.Figure(weight)
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return "; " + note
}

func termName(term *berthv1.ScoreTerm) string {
	if term.GetKey() == "" {
		return term.GetWeigher()
	}
	return term.GetWeigher() + " " + term.GetKey()
}

func verdict(rule *berthv1.ConstraintResult) string {
	switch {
	case rule.GetPassed():
		return "fits"
	case rule.GetMessage() != "":
		return "refused: " + rule.GetMessage()
	default:
		return "refused: " + rule.GetCode()
	}
}

// figures are what a rule has compared, and how old the node's word was.
func figures(rule *berthv1.ConstraintResult) (text string) {
	amount := func(f float64) string {
		if rule.GetUnit() == "bytes" {
			return size(int64(f))
		}
		return units.Figure(f) + " " + rule.GetUnit()
	}
	if rule.Needed != nil {
		text = "needs " + amount(rule.GetNeeded())
	}
	if rule.Available != nil {
		if text != "" {
			text += ", "
		}
		text += "has " + amount(rule.GetAvailable())
	}
	if rule.InputAgeSeconds != nil {
		if text != "" {
			text += ", "
		}
		text += age(rule.InputAgeSeconds) + " old"
	}
	return text
}

// decisionPage is what the page of one decision shows.
type decisionPage struct {
	Decision *berthv1.Decision
	Matrix   *matrix
}

func showDecision(v *visit) (*page, error) {
	answer, err := v.API.GetDecision(v.ctx, connect.NewRequest(&berthv1.GetDecisionRequest{Id: v.path("id")}))
	if err != nil {
		return nil, err
	}
	d := answer.Msg.GetDecision()
	return &page{
		name: "decision", Title: "Decision " + d.GetId(), Here: "events", Command: "berth decision show " + quoted(d.GetId()),
		Body: decisionPage{d, matrixOf(d)},
	}, nil
}
