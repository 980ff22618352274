package placement

import (
	"fmt"
	"strconv"
	"strings"
)

// figure prints a score with at most two decimals.
func figure(f float64) string {
	text := strconv.FormatFloat(f, 'f', 2, 64)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// count is "1 node" or "3 nodes".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// margin prints a difference that is not zero.
func margin(difference float64) string {
	if text := figure(difference); text != "0" {
		return text
	}
	return "less than 0.01"
}

// winReason says in one sentence why the winner won.
func (e *Engine) winReason(choice Choice) string {
	name, nodes := e.input.Name(choice.Node), e.input.Columns.Len()
	var text string
	switch {
	case e.bypassed():
		text = name + " has the VM's disk: with local storage it starts there, and no keys are looked at"
	case e.input.Pinned != "":
		text = name + " was asked for and fits"
	case choice.Stays && choice.Margin < 0:
		text = fmt.Sprintf("%s would gain %s, less than the %s asked for",
			e.input.Name(choice.RunnerUp), margin(-choice.Margin), figure(e.request.IfBetter))
	case e.request.Last == e.input.Columns.IDs[choice.Node]:
		text = name + " is where the VM ran last, and it fits"
	case choice.Candidates == 1:
		text = name + " is the only node that fits"
	case e.accountText(choice) != "" && choice.Band == 1:
		text = name + " has " + e.accountText(choice)
	case choice.Band == 1 && choice.Round > 0:
		text = e.aloneText(choice)
	case choice.Ties > 1:
		text = e.tieText(choice)
	default:
		text = e.scoreText(choice)
		text += e.bandText(choice)
	}
	if account := e.accountText(choice); account != "" && choice.Band > 1 && choice.Candidates > 1 {
		text += "; each has " + account
	}
	if choice.Stays {
		text = "the VM stays: " + text
	}
	if refused := nodes - choice.Candidates; refused > 0 {
		text += fmt.Sprintf("; %d of %s refused", refused, count(nodes, "node"))
	}
	return text
}

// scoreText tells the winner's score, or its weight where a weight decides, and how much better it is.
func (e *Engine) scoreText(choice Choice) string {
	does, than := "scores", "more"
	if e.weight() {
		does, than = "weighs", "less"
	}
	return fmt.Sprintf("%s %s %s by %s, %s %s than %s", e.input.Name(choice.Node), does, e.scoreFigure(choice.Customer), e.scoreName(),
		margin(choice.Margin), than, e.input.Name(choice.RunnerUp))
}

// weight tells whether what decided inside the band is a weight.
func (e *Engine) weight() bool { return len(e.scorers) == 1 && e.scorers[0].Weight }

func (e *Engine) scoreFigure(score float64) string {
	if e.weight() {
		score = -score
	}
	return figure(score)
}

// scoreName is what decided inside the band.
func (e *Engine) scoreName() string {
	switch len(e.scorers) {
	case 1:
		return strings.ReplaceAll(e.scorers[0].Name, "-", " ")
	default:
		return e.policy.Selector
	}
}

func (e *Engine) aloneText(choice Choice) string {
	text := fmt.Sprintf("%s alone has a system score above %s: %s",
		e.input.Name(choice.Node), figure(choice.Threshold), figure(choice.System))
	if choice.RunnerUp >= 0 {
		text += fmt.Sprintf(", %s more than %s", margin(choice.Margin), e.input.Name(choice.RunnerUp))
	}
	return text
}

func (e *Engine) tieText(choice Choice) string {
	name := e.input.Name(choice.Node)
	others := count(choice.Ties-1, "other node")
	if choice.Ties == 2 {
		others = e.input.Name(choice.RunnerUp)
	}
	text := fmt.Sprintf("%s is as good as %s", name, others)
	if len(e.scorers) > 1 || len(e.scorers) == 1 && choice.Customer != 0 {
		text += fmt.Sprintf(" (%s by %s)", e.scoreFigure(choice.Customer), e.scoreName())
	}
	text += e.bandText(choice)
	if choice.Stays {
		return text
	}
	return text + ", and won the draw"
}

// bandText tells the round that the nodes entered at.
func (e *Engine) bandText(choice Choice) string {
	if choice.Round == 0 {
		return ""
	}
	return fmt.Sprintf(", of %s above %s in round %d", count(choice.Band, "node"), figure(choice.Threshold), choice.Round)
}

// refusalReason says in one sentence why no node fits: how many nodes each rule refused, and which came nearest.
func (e *Engine) refusalReason(choice Choice) string {
	in, nodes := &e.input, e.input.Columns.Len()
	switch {
	case nodes == 0:
		return fmt.Sprintf("no node fits: cluster %s has no node yet", in.Columns.Cluster)
	case choice.FailedPhase == PhaseSystem:
		nearest, score := e.nearestShut()
		return fmt.Sprintf("no node fits: %s no system score above %s; nearest is %s with %s; constraints refused %d of %s",
			has(choice.Candidates), figure(e.policy.Gate.Final), in.Name(nearest), figure(score),
			nodes-choice.Candidates, count(nodes, "node"))
	case in.Pinned != "":
		return e.onlyRefusal(in.Pinned, in.PinnedName, "was asked for")
	case in.Home != "":
		return e.onlyRefusal(in.Home, in.Home, "has the VM's disk")
	case len(e.request.Among) == 1:
		return e.onlyRefusal(e.request.Among[0], e.request.Among[0], "is the only node that it may go to")
	}
	refusals := make([]int, len(e.constraints))
	for node := range nodes {
		for c := range e.constraints {
			if !e.constraints[c].Check(in, node).Passed {
				refusals[c]++
			}
		}
	}
	var counts []string
	for c, n := range refusals {
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%s refuses %d", e.constraints[c].Name, n))
		}
	}
	nearest := e.nearestRefused(1)[0]
	return fmt.Sprintf("no node fits: of %s, %s; nearest is %s: %s",
		count(nodes, "node"), strings.Join(counts, ", "), in.Name(nearest), strings.Join(e.complaints(nearest), "; "))
}

// onlyRefusal speaks of the one node that can be.
func (e *Engine) onlyRefusal(id, name, why string) string {
	node, found := e.input.Columns.Index(id)
	if !found {
		return fmt.Sprintf("no node fits: %s %s and is no node of this cluster", name, why)
	}
	return fmt.Sprintf("no node fits: %s %s and is refused: %s",
		e.input.Name(node), why, strings.Join(e.complaints(node), "; "))
}

func has(n int) string {
	if n == 1 {
		return "the only candidate has"
	}
	return fmt.Sprintf("the %d candidates have", n)
}

// nearestShut is the candidate with the highest system score, the first by name among equals.
func (e *Engine) nearestShut() (nearest int, score float64) {
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
func (e *Engine) complaints(node int) []string {
	var complaints []string
	for c := range e.constraints {
		if verdict := e.constraints[c].Check(&e.input, node); !verdict.Passed {
			complaints = append(complaints, e.constraints[c].Say(&e.input, node, verdict))
		}
	}
	return complaints
}

// orderText, gateText and selectorText tell in one line each what the stages did.
func (e *Engine) orderText(ordered []candidate) string {
	tiers := 0
	for i := range ordered {
		tiers = max(tiers, ordered[i].tier)
	}
	return fmt.Sprintf("%s: %s in %s", e.plan.Name, count(len(ordered), "node"), count(tiers, "tier"))
}

func (e *Engine) gateText(choice Choice) string {
	gate := e.policy.Gate
	switch {
	case e.bypassed():
		return string(GateOff) + ": local storage"
	case e.thresholds == nil:
		return string(gate.Kind)
	}
	text := fmt.Sprintf("%s from %s to %s in %s: ", gate.Kind, figure(gate.Initial), figure(gate.Final), count(gate.Steps, "round"))
	switch {
	case choice.Candidates == 0:
		return text + "no candidate"
	case choice.Node < 0:
		return text + "no node above " + figure(gate.Final)
	}
	return text + fmt.Sprintf("%s above %s in round %d", count(choice.Band, "node"), figure(choice.Threshold), choice.Round)
}

func (e *Engine) selectorText() string {
	switch {
	case len(e.scorers) == 0:
		return "draw: no weigher"
	case e.weight():
		return "weight of " + e.scorers[0].Name
	case len(e.scorers) == 1:
		return "raw score of " + e.scorers[0].Name
	default:
		return fmt.Sprintf("%s of %s", e.policy.Selector, count(len(e.scorers), "weigher"))
	}
}
