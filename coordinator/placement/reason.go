package placement

import (
	"fmt"
	"strings"

	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

func figure(f float64) string { return units.Figure(f) }

func count(n int, what string) string { return rule.Count(n, what) }

// margin prints a difference that is not zero.
func margin(difference float64) string {
	if text := figure(difference); text != "0" {
		return text
	}
	return "less than 0.01"
}

// wording says in words why a decision that was just made came out as it did.
type wording struct {
	*Engine
	choice Choice
}

// win says in one sentence why the winner won.
func (w wording) win() string {
	name, nodes := w.input.Name(w.choice.Node), w.input.Columns.Len()
	var text string
	switch {
	case w.bypassed():
		text = name + " has the VM's disk: with local storage it starts there, and no keys are looked at"
	case w.input.Pinned != "":
		text = name + " was asked for and fits"
	case w.choice.Stays && w.choice.Margin < 0:
		text = fmt.Sprintf("%s would gain %s, less than the %s asked for",
			w.input.Name(w.choice.RunnerUp), margin(-w.choice.Margin), figure(w.request.IfBetter))
	case w.request.Last == w.input.Columns.IDs[w.choice.Node]:
		text = name + " is where the VM ran last, and it fits"
	case w.choice.Candidates == 1:
		text = name + " is the only node that fits"
	case w.choice.Kept == 1:
		text = w.leastText()
	case w.accountText() != "" && w.choice.Band == 1:
		text = name + " has " + w.accountText()
	case w.choice.Band == 1 && w.choice.Round > 0:
		text = w.aloneText()
	case w.choice.Ties > 1:
		text = w.tieText()
	default:
		text = w.scoreText()
		text += w.bandText()
	}
	if w.choice.Kept > 1 && !w.bypassed() && w.input.Pinned == "" {
		text += w.keptText()
	}
	if account := w.accountText(); account != "" && w.choice.Band > 1 && w.choice.Candidates > 1 {
		text += "; each has " + account
	}
	if w.choice.Stays {
		text = "the VM stays: " + text
	}
	if refused := nodes - w.choice.Candidates; refused > 0 {
		text += fmt.Sprintf("; %d of %s refused", refused, count(nodes, "node"))
	}
	return text
}

// scoreText tells the winner's score, or its weight where a weight decides, and how much better it is.
func (w wording) scoreText() string {
	does, than := "scores", "more"
	if w.weight() {
		does, than = "weighs", "less"
	}
	return fmt.Sprintf("%s %s %s by %s, %s %s than %s", w.input.Name(w.choice.Node), does, w.scoreFigure(w.choice.Customer), w.scoreName(),
		margin(w.choice.Margin), than, w.input.Name(w.choice.RunnerUp))
}

// weight tells whether what decided inside the band is a weight.
func (w wording) weight() bool { return len(w.scorers) == 1 && w.scorers[0].Weight }

func (w wording) scoreFigure(score float64) string {
	if w.weight() {
		score = -score
	}
	return figure(score)
}

// scoreName is what decided inside the band.
func (w wording) scoreName() string {
	switch len(w.scorers) {
	case 1:
		return strings.ReplaceAll(w.scorers[0].Name, "-", " ")
	default:
		return w.policy.Selector
	}
}

func (w wording) aloneText() string {
	text := fmt.Sprintf("%s alone has a system score above %s: %s",
		w.input.Name(w.choice.Node), figure(w.choice.Threshold), figure(w.choice.System))
	if w.choice.RunnerUp >= 0 && !w.choice.Behind {
		text += fmt.Sprintf(", %s more than %s", margin(w.choice.Margin), w.input.Name(w.choice.RunnerUp))
	}
	return text
}

func (w wording) tieText() string {
	text := fmt.Sprintf("%s is one of %d equals", w.input.Name(w.choice.Node), w.choice.Ties)
	if w.choice.Ties == 2 {
		text += " with " + w.input.Name(w.choice.RunnerUp)
	}
	if len(w.scorers) > 1 || len(w.scorers) == 1 && w.choice.Customer != 0 {
		text += fmt.Sprintf(" (%s by %s)", w.scoreFigure(w.choice.Customer), w.scoreName())
	}
	text += w.bandText()
	if w.choice.Stays {
		return text
	}
	return text + ", drawn"
}

// bandText tells the round that the nodes entered at.
func (w wording) bandText() string {
	if w.choice.Round == 0 {
		return ""
	}
	return fmt.Sprintf(", of %s above %s in round %d", count(w.choice.Band, "node"), figure(w.choice.Threshold), w.choice.Round)
}

// refusal says in one sentence why no node fits: how many nodes each rule refused, and which came nearest.
func (w wording) refusal() string {
	in, nodes := &w.input, w.input.Columns.Len()
	switch {
	case nodes == 0:
		return fmt.Sprintf("no node fits: cluster %s has no node yet", in.Columns.Cluster)
	case w.choice.FailedPhase == PhaseSystem:
		nearest, score := nearestShut(w.Engine)
		return fmt.Sprintf("no node fits: %s no system score above %s; nearest is %s with %s; constraints refused %d of %s",
			has(w.choice.Candidates), figure(w.policy.Gate.Final), in.Name(nearest), figure(score),
			nodes-w.choice.Candidates, count(nodes, "node"))
	case len(in.Bindings) > 0 && in.Current != "":
		return "no node fits: " + constraint.SayBound(in)
	case in.Pinned != "":
		return w.refusalOfOnly(in.Pinned, in.PinnedName, "was asked for")
	case in.Home != "":
		return w.refusalOfOnly(in.Home, in.Home, "has the VM's disk")
	case len(w.request.Among) == 1:
		return w.refusalOfOnly(w.request.Among[0], w.request.Among[0], "is the only node that it may go to")
	}
	refusals := make([]int, len(w.constraints))
	for node := range nodes {
		for c := range w.constraints {
			if !w.constraints[c].Check(in, node).Passed {
				refusals[c]++
			}
		}
	}
	var counts []string
	for c, n := range refusals {
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%s refuses %d", w.constraints[c].Name, n))
		}
	}
	nearest := nearestRefused(w.Engine, 1)[0]
	text := fmt.Sprintf("no node fits: of %s, %s; nearest is %s: %s",
		count(nodes, "node"), strings.Join(counts, ", "), in.Name(nearest), strings.Join(w.complaints(nearest), "; "))
	if len(in.Apart) > 0 && !strings.Contains(text, in.Apart[0].Why) {
		text += "; and " + in.Apart[0].Why // somebody has to mend that, whatever else is short
	}
	return text
}

// refusalOfOnly speaks of the one node that can be.
func (w wording) refusalOfOnly(id, name, why string) string {
	node, found := w.input.Columns.Index(id)
	if !found {
		return fmt.Sprintf("no node fits: %s %s and is no node of this cluster", name, why)
	}
	return fmt.Sprintf("no node fits: %s %s and is refused: %s",
		w.input.Name(node), why, strings.Join(w.complaints(node), "; "))
}

func has(n int) string {
	if n == 1 {
		return "the only candidate has"
	}
	return fmt.Sprintf("the %d candidates have", n)
}

// nearestShut is the candidate with the highest system score, the first by name among equals.
func nearestShut(e *Engine) (nearest int, score float64) {
	nearest = -1
	for _, at := range e.candidates {
		switch node := int(at); {
		case nearest < 0 || e.system[node] > score,
			e.system[node] == score && e.input.Name(node) < e.input.Name(nearest):
			nearest, score = node, e.system[node]
		}
	}
	return nearest, score
}

// complaints are the messages of all constraints that refuse the node.
func (w wording) complaints(node int) []string {
	var complaints []string
	for c := range w.constraints {
		if verdict := w.constraints[c].Check(&w.input, node); !verdict.Passed {
			complaints = append(complaints, w.constraints[c].Say(&w.input, node, verdict))
		}
	}
	return complaints
}

// orderText, gateText and selectorText tell in one line each what the stages did.
func (w wording) orderText(ordered []candidate) string {
	tiers := 0
	for i := range ordered {
		tiers = max(tiers, ordered[i].tier)
	}
	return fmt.Sprintf("%s: %s in %s", w.plan.Name, count(len(ordered), "node"), count(tiers, "tier"))
}

func (w wording) gateText() string {
	gate := w.policy.Gate
	switch {
	case w.bypassed():
		return string(policies.GateOff) + ": local storage"
	case w.thresholds == nil:
		return string(gate.Kind)
	}
	text := fmt.Sprintf("%s from %s to %s in %s: ", gate.Kind, figure(gate.Initial), figure(gate.Final), count(gate.Steps, "round"))
	switch {
	case w.choice.Candidates == 0:
		return text + "no candidate"
	case w.choice.Node < 0:
		return text + "no node above " + figure(gate.Final)
	}
	return text + fmt.Sprintf("%s above %s in round %d", count(w.choice.Band, "node"), figure(w.choice.Threshold), w.choice.Round)
}

func (w wording) selectorText() string {
	switch {
	case len(w.scorers) == 0:
		return "draw: no weigher"
	case w.weight():
		return "weight of " + w.scorers[0].Name
	case len(w.scorers) == 1:
		return "raw score of " + w.scorers[0].Name
	default:
		return fmt.Sprintf("%s of %s", w.policy.Selector, count(len(w.scorers), "weigher"))
	}
}
