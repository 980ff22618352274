package explanation

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Placement says in half a sentence how a decision came out, for the line that reports what it led to.
func Placement(d *berthv1.Decision) string {
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
		parts = append(parts, fmt.Sprintf("%d of %s fit", fit, term.Count(nodes, "node")))
	default:
		parts = append(parts, term.Count(nodes, "node"))
	}
	switch {
	case winner == nil:
	case d.GetRound() > 0:
		parts = append(parts, fmt.Sprintf("round %d", d.GetRound()))
		if winner.GetCustomerScore() != 0 {
			parts = append(parts, "customer score "+units.Figure(winner.GetCustomerScore()))
		}
	case len(winner.GetTerms()) > 0:
		parts = append(parts, "score "+units.Figure(winner.GetScore()))
	}
	if winner != nil && next != nil && winner.GetTier() == next.GetTier() && winner.GetBand() == next.GetBand() {
		if d.GetMargin() > 0 {
			parts = append(parts, fmt.Sprintf("next best %s by %s", next.GetNode(), margin(d.GetMargin())))
		} else if d.GetOmitted() > 0 { // some of the equals may be among those
			parts = append(parts, "equal to "+next.GetNode()+drawn(winner))
		} else {
			parts = append(parts, fmt.Sprintf("one of %d equals%s", equals(d, winner), drawn(winner)))
		}
	}
	return strings.TrimSuffix("decision "+d.GetId()+"; "+strings.Join(parts, ", "), "; ")
}

// drawn says that a winner was drawn of its equals: one that has the VM is not, because staying is better than that.
func drawn(winner *berthv1.DecisionNode) string {
	if winner.GetCurrent() {
		return ""
	}
	return ", drawn"
}

// Differing are what would have to differ for another outcome, each line by itself.
func Differing(d *berthv1.Decision) []string {
	var lines []string
	for _, text := range remedies(d) {
		lines = append(lines, "what would have to differ: "+text)
	}
	if why := alone(d); len(lines) == 0 && why != "" {
		lines = append(lines, "what would have to differ: "+why)
	}
	return lines
}

// alone says why a VM stays that no other node takes; empty: that is not why.
func alone(d *berthv1.Decision) string {
	var refusing []*berthv1.DecisionNode
	for _, node := range d.GetNodes() {
		switch {
		case !node.GetAdmitted():
			refusing = append(refusing, node)
		case !node.GetCurrent():
			return ""
		}
	}
	switch {
	case len(refusing) == 0 || len(refusing) == len(d.GetNodes()):
		return ""
	case len(refusing) == 1 && d.GetOmitted() == 0:
		return refusing[0].GetNode() + " refuses it: " + because(refusing[0])
	default:
		return "another node would have to take it: " + counted(refusing)
	}
}

// because is the first word of a node against a VM.
func because(node *berthv1.DecisionNode) string {
	for _, c := range node.GetConstraints() {
		if !c.GetPassed() {
			return cmp.Or(c.GetMessage(), c.GetConstraint())
		}
	}
	return "it was not asked"
}

// counted is how many of some nodes each constraint refuses.
func counted(nodes []*berthv1.DecisionNode) string {
	refuses := map[string]int{}
	for _, node := range nodes {
		for _, c := range node.GetConstraints() {
			if !c.GetPassed() {
				refuses[c.GetConstraint()]++
			}
		}
	}
	return tallied(refuses)
}

// tallied prints how many nodes each constraint refuses.
func tallied(refuses map[string]int) string {
	var parts []string
	for _, constraint := range slices.Sorted(maps.Keys(refuses)) {
		parts = append(parts, fmt.Sprintf("%s refuses %d", constraint, refuses[constraint]))
	}
	return strings.Join(parts, ", ")
}

// equals counts the nodes that are as good as the winner, itself included.
func equals(d *berthv1.Decision, winner *berthv1.DecisionNode) int {
	alike := 0
	for _, node := range d.GetNodes() {
		if node.GetAdmitted() && node.GetTier() == winner.GetTier() && node.GetBand() == winner.GetBand() &&
			node.GetScore() == winner.GetScore() {
			alike++
		}
	}
	return alike
}

// margin prints a difference that is not zero.
func margin(f float64) string {
	if text := units.Figure(f); text != "0" {
		return text
	}
	return "less than 0.01"
}

// WriteRefusal shows, for an error, why every node was refused and what would have changed it.
func WriteRefusal(w io.Writer, d *berthv1.Decision) {
	p := &term.Page{Out: w}
	refusals(p, d.GetNodes(), true)
	for _, change := range remedies(d) {
		p.Line("what would do: %s", change)
	}
}

// remedies are what would have changed a decision, each of them alone.
func remedies(d *berthv1.Decision) []string {
	if len(d.GetChanges()) == 0 && d.GetCounterfactual() != "" {
		return []string{d.GetCounterfactual()}
	}
	return d.GetChanges()
}

// refusals writes a line for each constraint that refused a node. In brief, words are left out where figures say it, and
// nodes beyond briefNodes are only counted.
func refusals(p *term.Page, nodes []*berthv1.DecisionNode, brief bool) {
	var rows [][]string
	left := map[string]int{}
	for i, node := range nodes {
		name := nodeName(node)
		for _, c := range node.GetConstraints() {
			if c.GetPassed() {
				continue
			}
			if brief && i >= term.Brief {
				left[c.GetConstraint()]++
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
		p.Indented("  ", []string{"NODE", "CONSTRAINT", "NEEDED", "AVAILABLE", "AGE", "WHY"}, rows)
	}
	if len(left) > 0 {
		p.Line("  and %s: %s", term.Count(len(nodes)-term.Brief, "more node"), tallied(left))
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
	return []string{amount(c.Needed, c.GetUnit()), amount(c.Available, c.GetUnit()), term.OptionalAge(c.InputAgeSeconds)}
}

func amount(f *float64, unit string) string {
	switch {
	case f == nil || unit == "" && *f == 0:
		return term.None
	case unit == "bytes":
		return term.Size(int64(*f))
	case unit == "score":
		return units.Figure(*f)
	case unit == "seconds":
		return term.Span(term.Seconds(*f))
	default:
		return units.Figure(*f) + unit
	}
}

// Detail is how much of a decision is shown. Full has every term and every verdict; wide has more columns.
type Detail struct{ Wide, Full bool }

// Write writes a decision: what was asked, what came of it and why, what would have changed it, and the nodes.
func Write(a *term.App, p *term.Page, d *berthv1.Decision, show Detail) {
	title := "decision " + d.GetId()
	if d.GetDryRun() {
		title = strings.TrimSpace("dry run "+d.GetId()) + ": nothing was changed"
	}
	p.Line("%s", title)
	rows := [][2]string{
		{"asked", question(d)},
		{"by", fmt.Sprintf("%s at %s (%s ago)", cmp.Or(d.GetCaller(), term.None), a.At(d.GetMadeAt()), a.Since(d.GetMadeAt()))},
		{"runs on", d.GetRequest().GetCurrentNode()},
		{"left out", strings.Join(d.GetRequest().GetExcludedNodes(), ", ")},
		{"only among", strings.Join(d.GetRequest().GetAmong(), ", ")},
		{"prefers", strings.Join(d.GetRequest().GetPreferredNodes(), ", ")},
		{"together with", strings.Join(d.GetRequest().GetUnit(), ", ")},
		{"outcome", Outcome(d)},
		{"why", d.GetReason()},
		{"margin", MarginField(d)},
		{"round", round(d)},
	}
	for _, warning := range d.GetWarnings() {
		rows = append(rows, [2]string{"warning", warning})
	}
	for _, pool := range d.GetPools() {
		rows = append(rows, [2]string{"disk " + pool.GetDisk(), "goes to pool " + pool.GetPool()})
	}
	for _, change := range remedies(d) {
		rows = append(rows, [2]string{"otherwise", change})
	}
	if d.GetOmitted() > 0 {
		rows = append(rows, [2]string{"kept", fmt.Sprintf("the figures of %d of %d nodes", d.GetKept(), d.GetKept()+d.GetOmitted())})
	}
	if show.Full {
		rows = append(rows, [][2]string{
			{"policy", fmt.Sprintf("%s, seed %d", cmp.Or(d.GetPolicy(), term.None), d.GetSeed())},
			{"order", d.GetOrder()},
			{"prefer", d.GetPrefer()},
			{"gate", d.GetGate()},
			{"select", d.GetSelector()},
		}...)
	}
	p.Fields("  ", append(rows, [2]string{"operation", d.GetOperationId()})...)
	if keys := slices.Concat(d.GetRequest().GetSystemKeys(), d.GetRequest().GetCustomerKeys()); show.Full && len(keys) > 0 {
		p.Blank()
		p.Line("keys of the VM")
		askedKeys(p, keys)
	}
	Clusters(p, d.GetClusters(), show)
	Nodes(p, d.GetNodes(), show)
}

// Nodes writes what a decision found of the nodes. In full the scores of those that no round let in stand there too.
func Nodes(p *term.Page, nodes []*berthv1.DecisionNode, show Detail) {
	candidates, refused := split(nodes)
	if show.Full {
		for _, node := range refused {
			if len(node.GetTerms()) > 0 {
				candidates = append(candidates, node)
			}
		}
	}
	if len(candidates) > 0 {
		p.Blank()
		p.Line("candidates")
		Scores(p, candidates, show)
	}
	if len(refused) > 0 {
		p.Blank()
		p.Line("refused")
		refusals(p, refused, !show.Full)
	}
	if show.Full && len(nodes) > 0 {
		p.Blank()
		p.Line("all constraints")
		Verdicts(p, nodes)
	}
}

func question(d *berthv1.Decision) string {
	request := d.GetRequest()
	text := fmt.Sprintf("%s vm/%s (%v, %s)", d.GetPurpose(), d.GetVm(), units.Bytes(request.GetMemoryBytes()),
		term.Count(int(request.GetVcpus()), "vCPU"))
	if d.GetCluster() != "" {
		text += " in cluster " + d.GetCluster()
	}
	if request.GetHomeNode() != "" {
		text += ", its disk on " + request.GetHomeNode()
	}
	if request.GetPinnedNode() != "" {
		text += ", on " + request.GetPinnedNode() + " and no other node"
	}
	if request.GetLeave() {
		text += ", away from where it is"
	}
	if request.GetIfBetter() > 0 {
		text += ", if it gains at least " + term.Exact(request.GetIfBetter())
	}
	return text
}

// round says which system round made the band.
func round(d *berthv1.Decision) string {
	switch {
	case d.GetRound() > 0:
		return fmt.Sprintf("%d: the first in which a node was good enough", d.GetRound())
	case d.GetFailedPhase() == "system":
		return "none: no node was good enough in any"
	}
	return ""
}

func askedKeys(p *term.Page, keys []*berthv1.CompiledKey) {
	rows := make([][]string, 0, len(keys))
	for _, key := range keys {
		rows = append(
			rows,
			[]string{key.GetName(), key.GetClass(), term.Exact(key.GetValue()), term.Exact(key.GetWeight()), cmp.Or(key.GetLevel(), term.None)},
		)
	}
	p.Indented("  ", []string{"KEY", "CLASS", "VALUE", "WEIGHT", "LEVEL"}, rows)
}

// Outcome names the winner of a decision, or says that there is none.
func Outcome(d *berthv1.Decision) string {
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

// MarginField is the margin of the winner as a field shows it.
func MarginField(d *berthv1.Decision) string {
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

// Verdicts writes what every constraint said of every node.
func Verdicts(p *term.Page, nodes []*berthv1.DecisionNode) {
	var rows [][]string
	for _, node := range nodes {
		for _, c := range node.GetConstraints() {
			verdict := "passed"
			if !c.GetPassed() {
				verdict = cmp.Or(c.GetCode(), "refused")
			}
			rows = append(rows, append([]string{node.GetNode(), c.GetConstraint(), verdict}, figures(c)...))
		}
	}
	p.Indented("  ", []string{"NODE", "CONSTRAINT", "VERDICT", "NEEDED", "AVAILABLE", "AGE"}, rows)
}
