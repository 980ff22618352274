package placement

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
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

func (r *run) orderText() string {
	tiers := 0
	for i := range r.candidates {
		tiers = max(tiers, r.candidates[i].tier)
	}
	return fmt.Sprintf("%s: %s in %s", r.engine.planner.Name, count(len(r.candidates), "node"), count(tiers, "tier"))
}

func (r *run) gateText() string {
	gate := r.engine.policy.Gate
	if r.engine.thresholds == nil {
		return string(gate.Kind)
	}
	text := fmt.Sprintf("%s from %s to %s in %s: ",
		gate.Kind, figure(gate.Initial), figure(gate.Final), count(gate.Steps, "round"))
	if !r.placed() {
		return text + "no node above " + figure(gate.Final)
	}
	inside := 1
	for inside < len(r.candidates) && compareGroup(&r.candidates[0], &r.candidates[inside]) == 0 {
		inside++
	}
	band := r.candidates[0].band
	return text + fmt.Sprintf("%s above %s in round %d", count(inside, "node"), figure(r.engine.thresholds[band-1]), band)
}

func (r *run) selectorText() string {
	switch len(r.engine.weighers) {
	case 0:
		return "draw: no weigher"
	case 1:
		return "raw score of " + r.engine.weighers[0].Name
	default:
		return fmt.Sprintf("%s of %s", r.engine.policy.Selector, count(len(r.engine.weighers), "weigher"))
	}
}

// winReason says in one sentence why the winner won.
func (r *run) winReason() string {
	winner := &r.candidates[0]
	name := r.name(winner.node)
	text := ""
	switch next := r.runnerUp(); {
	case r.input.Pinned != "":
		text = name + " was asked for and fits"
	case next == nil && len(r.candidates) == 1:
		text = name + " is the only node that fits"
	case next == nil:
		text = fmt.Sprintf("%s is alone in the best band or tier", name)
	case next.score == winner.score:
		text = r.tieText(name, winner)
	default:
		text = fmt.Sprintf("%s scores %s, %s more than %s",
			name, figure(winner.score), margin(winner.score-next.score), r.name(next.node))
	}
	if winner.stays {
		text = "the VM stays: " + text
	}
	if refused := len(r.view.Nodes) - len(r.admitted); refused > 0 {
		text += fmt.Sprintf("; %d of %s refused", refused, count(len(r.view.Nodes), "node"))
	}
	return text
}

func (r *run) tieText(name string, winner *candidate) string {
	var equals []string
	for i := 1; i < len(r.candidates) && compareGroup(winner, &r.candidates[i]) == 0; i++ {
		if r.candidates[i].score == winner.score {
			equals = append(equals, r.name(r.candidates[i].node))
		}
	}
	text := fmt.Sprintf("%s scores %s like %s", name, figure(winner.score), someOf(equals))
	if winner.stays {
		return text
	}
	return text + " and won the draw"
}

// someOf lists at most three names.
func someOf(names []string) string {
	const most = 3
	slices.Sort(names)
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// margin prints a difference that is not zero.
func margin(difference float64) string {
	if text := figure(difference); text != "0" {
		return text
	}
	return "less than 0.01"
}

// refusalReason says in one sentence why no node fits: how many nodes each rule refused, and which came nearest.
func (r *run) refusalReason() string {
	if len(r.view.Nodes) == 0 {
		return "no node fits: the cluster has no node yet"
	}
	if len(r.candidates) > 0 {
		best := &r.candidates[0]
		score := r.engine.gated.Weigh(&r.input, r.view.Nodes[best.node], nil)
		return fmt.Sprintf("no node fits: %s no system score above %s; nearest is %s with %s; constraints refused %d of %s",
			has(len(r.candidates)), figure(r.engine.policy.Gate.Final), r.name(best.node), figure(score),
			len(r.view.Nodes)-len(r.admitted), count(len(r.view.Nodes), "node"))
	}
	if r.input.Pinned != "" {
		return r.pinnedRefusal()
	}
	refusals := make([]int, len(r.engine.constraints))
	for node := range r.view.Nodes {
		for c, verdict := range r.verdictsOf(node) {
			if !verdict.Passed {
				refusals[c]++
			}
		}
	}
	var counts []string
	for c, n := range refusals {
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%s refuses %d", r.engine.constraints[c].Name, n))
		}
	}
	text := fmt.Sprintf("no node fits: of %s, %s", count(len(r.view.Nodes), "node"), strings.Join(counts, ", "))
	nearest := r.nearestMiss()
	return fmt.Sprintf("%s; nearest is %s: %s", text, r.name(nearest), strings.Join(r.complaints(nearest), "; "))
}

// pinnedRefusal speaks of the one node that was asked for.
func (r *run) pinnedRefusal() string {
	asked := slices.IndexFunc(r.view.Nodes, func(n *cluster.NodeView) bool { return n.Node.ID == r.input.Pinned })
	if asked < 0 {
		return fmt.Sprintf("no node fits: %s was asked for and is no node of this cluster", r.input.Pinned)
	}
	return fmt.Sprintf("no node fits: %s was asked for and is refused: %s",
		r.input.PinnedName, strings.Join(r.complaints(asked), "; "))
}

func has(n int) string {
	if n == 1 {
		return "the only candidate has"
	}
	return fmt.Sprintf("the %d candidates have", n)
}

// nearestMiss is the refused node with the fewest refusals that are not about an amount, then the smallest amount short.
func (r *run) nearestMiss() int {
	nearest, fewest, least := -1, 0, 0.0
	for _, node := range r.refused() {
		others, short := 0, 0.0
		for _, verdict := range r.verdictsOf(node) {
			switch {
			case verdict.Passed:
			case verdict.Unit == rule.Bytes:
				short = math.Max(short, verdict.Needed-verdict.Available)
			default:
				others++
			}
		}
		if nearest < 0 || others < fewest || others == fewest && short < least {
			nearest, fewest, least = node, others, short
		}
	}
	return nearest
}

// complaints are the messages of all constraints that refused the node.
func (r *run) complaints(node int) []string {
	var complaints []string
	for c, verdict := range r.verdictsOf(node) {
		if !verdict.Passed {
			complaints = append(complaints, r.engine.constraints[c].Say(&r.input, r.view.Nodes[node], verdict))
		}
	}
	return complaints
}
