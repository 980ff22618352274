package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// placement says in half a sentence how a decision came out, for the line that reports what it led to.
func placement(d *berthv1.Decision) string {
	var winner, next *berthv1.DecisionNode
	fit := 0
	for _, node := range d.GetNodes() {
		if !node.GetAdmitted() {
			continue
		}
		fit++
		switch node.GetRank() {
		case 1:
			winner = node
		case 2:
			next = node
		}
	}
	var parts []string
	switch nodes := len(d.GetNodes()); {
	case nodes == 0: // only its name is known
	case fit < nodes:
		parts = append(parts, fmt.Sprintf("%d of %s fit", fit, count(nodes, "node")))
	default:
		parts = append(parts, count(nodes, "node"))
	}
	if winner != nil && len(winner.GetTerms()) > 0 {
		parts = append(parts, "score "+number(winner.GetScore()))
	}
	if winner != nil && next != nil && winner.GetTier() == next.GetTier() && winner.GetBand() == next.GetBand() {
		if d.GetMargin() > 0 {
			parts = append(parts, fmt.Sprintf("next best %s by %s", next.GetNode(), margin(d.GetMargin())))
		} else {
			parts = append(parts, "equal to "+next.GetNode())
		}
	}
	return strings.TrimSuffix("decision "+d.GetId()+"; "+strings.Join(parts, ", "), "; ")
}

// margin prints a difference that is not zero.
func margin(f float64) string {
	if text := number(f); text != "0" {
		return text
	}
	return "less than 0.01"
}

// writeRefusal shows, for an error, why every node was refused and what would have changed it.
func writeRefusal(w io.Writer, d *berthv1.Decision) {
	p := &page{out: w}
	refusals(p, d.GetNodes(), true)
	if d.GetCounterfactual() != "" {
		p.line("what would do: %s", d.GetCounterfactual())
	}
}

// refusals writes a line for each constraint that refused a node. In brief, words are left out where figures say it.
func refusals(p *page, nodes []*berthv1.DecisionNode, brief bool) {
	var rows [][]string
	for _, node := range nodes {
		name := nodeName(node)
		for _, c := range node.GetConstraints() {
			if c.GetPassed() {
				continue
			}
			why := c.GetMessage()
			if brief && c.GetUnit() != "" {
				why = ""
			}
			rows = append(rows, append([]string{name, c.GetConstraint()}, append(figures(c), why)...))
			name = "" // said once
		}
	}
	if len(rows) > 0 {
		p.indented("  ", []string{"NODE", "CONSTRAINT", "NEEDED", "AVAILABLE", "AGE", "WHY"}, rows)
	}
}

func nodeName(node *berthv1.DecisionNode) string {
	if node.GetCurrent() {
		return node.GetNode() + "(current)"
	}
	return node.GetNode()
}

// figures are the needed and the available amount, and the age of the input.
func figures(c *berthv1.ConstraintResult) []string {
	return []string{amount(c.Needed, c.GetUnit()), amount(c.Available, c.GetUnit()), optionalAge(c.InputAgeSeconds)}
}

func amount(f *float64, unit string) string {
	switch {
	case f == nil || unit == "" && *f == 0:
		return none
	case unit == "bytes":
		return size(int64(*f))
	case unit == "seconds":
		return span(seconds(*f))
	default:
		return number(*f) + unit
	}
}

// explanation writes a whole decision: what was asked, what came of it and why, and every node.
func (a *app) explanation(p *page, d *berthv1.Decision, wide bool) {
	request := d.GetRequest()
	asked := fmt.Sprintf("%s vm/%s (%v, %s)", d.GetPurpose(), d.GetVm(), units.Bytes(request.GetMemoryBytes()),
		count(int(request.GetVcpus()), "vCPU"))
	if request.GetPinnedNode() != "" {
		asked += " on " + request.GetPinnedNode() + " and no other node"
	}
	title := "decision " + d.GetId()
	if d.GetDryRun() {
		title = strings.TrimSpace("dry run "+d.GetId()) + ": nothing was changed"
	}
	p.line("%s", title)
	p.fields("  ",
		[2]string{"asked", asked},
		[2]string{"by", fmt.Sprintf("%s at %s (%s ago)", or(d.GetCaller(), none), a.at(d.GetMadeAt()), a.since(d.GetMadeAt()))},
		[2]string{"runs on", request.GetCurrentNode()},
		[2]string{"left out", strings.Join(request.GetExcludedNodes(), ", ")},
		[2]string{"outcome", outcome(d)},
		[2]string{"why", d.GetReason()},
		[2]string{"margin", marginField(d)},
		[2]string{"otherwise", d.GetCounterfactual()},
		[2]string{"policy", fmt.Sprintf("%s, seed %d", or(d.GetPolicy(), none), d.GetSeed())},
		[2]string{"order", d.GetOrder()},
		[2]string{"gate", d.GetGate()},
		[2]string{"select", d.GetSelector()},
		[2]string{"operation", d.GetOperationId()},
	)
	candidates, refused := split(d.GetNodes())
	if len(candidates) > 0 {
		p.blank()
		p.line("candidates")
		scores(p, candidates, wide)
	}
	if len(refused) > 0 {
		p.blank()
		p.line("refused")
		refusals(p, refused, false)
	}
	if wide {
		p.blank()
		p.line("all constraints")
		verdicts(p, d.GetNodes())
	}
}

func outcome(d *berthv1.Decision) string {
	switch d.GetOutcome() {
	case berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED:
		return "placed on " + d.GetWinner()
	case berthv1.DecisionOutcome_DECISION_OUTCOME_STAY:
		return "stays on " + d.GetWinner()
	case berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED:
		return "refused"
	}
	return ""
}

func marginField(d *berthv1.Decision) string {
	if d.GetMargin() == 0 {
		return ""
	}
	return margin(d.GetMargin())
}

// split parts the nodes into candidates, by rank, and refused ones.
func split(nodes []*berthv1.DecisionNode) (candidates, refused []*berthv1.DecisionNode) {
	for _, node := range nodes {
		if node.GetAdmitted() {
			candidates = append(candidates, node)
		} else {
			refused = append(refused, node)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *berthv1.DecisionNode) int { return cmp.Compare(a.GetRank(), b.GetRank()) })
	return candidates, refused
}

// scores writes every term of every candidate's score. A node's name and score stand on its first line.
func scores(p *page, candidates []*berthv1.DecisionNode, wide bool) {
	headings := []string{"RANK", "NODE", "SCORE", "TERM", "VALUE", "PROXIMITY", "WEIGHT", "CONTRIBUTION"}
	if wide {
		headings = append(headings, "WEIGHER", "TIER", "BAND", "NODE-ID")
	}
	var rows [][]string
	for _, node := range candidates {
		head := []string{strconv.Itoa(int(node.GetRank())), nodeName(node), number(node.GetScore())}
		terms := node.GetTerms()
		if len(terms) == 0 {
			terms = []*berthv1.ScoreTerm{nil}
		}
		for _, term := range terms {
			row := append(head, termCells(term)...)
			if wide {
				row = append(row, or(term.GetWeigher(), none), strconv.Itoa(int(node.GetTier())),
					strconv.Itoa(int(node.GetBand())), or(node.GetNodeId(), none))
			}
			rows = append(rows, row)
			head = []string{"", "", ""}
		}
	}
	p.indented("  ", headings, rows)
}

func termCells(term *berthv1.ScoreTerm) []string {
	if term == nil {
		return []string{none, none, none, none, none}
	}
	return []string{
		or(term.GetKey(), term.GetWeigher()), number(term.GetRaw()), optionalNumber(term.Proximity),
		number(term.GetWeight()), number(term.GetContribution()),
	}
}

// verdicts writes what every constraint said of every node.
func verdicts(p *page, nodes []*berthv1.DecisionNode) {
	var rows [][]string
	for _, node := range nodes {
		for _, c := range node.GetConstraints() {
			verdict := "passed"
			if !c.GetPassed() {
				verdict = or(c.GetCode(), "refused")
			}
			rows = append(rows, append([]string{node.GetNode(), c.GetConstraint(), verdict}, figures(c)...))
		}
	}
	p.indented("  ", []string{"NODE", "CONSTRAINT", "VERDICT", "NEEDED", "AVAILABLE", "AGE"}, rows)
}
