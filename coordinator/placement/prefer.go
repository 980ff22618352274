package placement

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
)

// pickWishes finds the soft rules that say something of the request.
func (e *Engine) pickWishes() {
	for _, w := range e.wishes {
		if silent := e.weighers[w].Silent; silent == nil || !silent(&e.input) {
			e.wanting.By = append(e.wanting.By, w)
		}
	}
}

// alike tells whether Prefer makes no difference between two candidates.
func (e *Engine) alike(a, b int) bool {
	return len(e.wanting.By) == 0 || a == b || e.wanting.Compare(int32(a), int32(b)) == 0
}

// prefer scans only the candidates that break the least, then those that break the least of the others, until the gate lets one in:
// a soft rule never keeps a VM from starting. One more scan finds the next best node where the winner is alone.
func (e *Engine) prefer() Choice {
	all := e.candidates
	defer func() { e.candidates = all }()
	e.wanting.Ask(e.weighers, &e.input, len(e.out), e.policy.ContendedAbove)
	w := &e.wanting
	w.Left = append(w.Left[:0], all...)
	choice := Choice{Node: -1, RunnerUp: -1, FailedPhase: PhaseConstraint}
	shut := false
	for len(w.Left) > 0 && (choice.Node < 0 || choice.RunnerUp < 0) {
		w.Keep()
		e.candidates = w.Kept
		next := e.scan(false)
		switch {
		case next.Node < 0 && (!shut || next.System > choice.System) && choice.Node < 0:
			choice, shut = next, true
		case next.Node < 0:
		case choice.Node < 0:
			choice, choice.Kept = next, len(w.Kept)
		default:
			choice.RunnerUp, choice.Margin, choice.Behind = next.Node, 0, true
		}
	}
	choice.Candidates = len(all)
	return choice
}

// rankWishes numbers the candidates of each tier by what they break.
func (e *Engine) rankWishes(candidates []candidate) {
	if len(e.wanting.By) == 0 {
		return
	}
	e.wanting.Ask(e.weighers, &e.input, len(e.out), e.policy.ContendedAbove)
	sorted := make([]*candidate, len(candidates))
	for i := range candidates {
		sorted[i] = &candidates[i]
	}
	compare := func(a, b *candidate) int {
		if a.tier != b.tier {
			return a.tier - b.tier
		}
		return e.wanting.Compare(int32(a.node), int32(b.node))
	}
	slices.SortStableFunc(sorted, compare)
	for i, one := range sorted {
		switch {
		case i == 0 || sorted[i-1].tier != one.tier:
			one.wish = 1
		case compare(sorted[i-1], one) == 0:
			one.wish = sorted[i-1].wish
		default:
			one.wish = sorted[i-1].wish + 1
		}
	}
}

// enteredWith is how many candidates that Prefer finds like a node have a system score above a threshold.
func (e *Engine) enteredWith(node int, threshold float64) int {
	entered := 0
	for _, other := range e.above(threshold) {
		if e.alike(node, int(other)) {
			entered++
		}
	}
	return entered
}

// preferText tells what Prefer did; empty where it was not asked.
func (w wording) preferText() string {
	if len(w.wanting.By) == 0 || w.choice.Node < 0 {
		return ""
	}
	names := make([]string, len(w.wanting.By))
	for i, wish := range w.wanting.By {
		names[i] = w.weighers[wish].Name
	}
	text := fmt.Sprintf("%d of %s, by %s", w.choice.Kept, count(w.choice.Candidates, "node"), strings.Join(names, ", then "))
	contended := 0
	for _, node := range w.candidates {
		if w.wanting.Contended(int(node)) {
			contended++
		}
	}
	if contended > 0 {
		text += fmt.Sprintf("; work waits more than %s %% of the time on %s, after all others", figure(w.policy.ContendedAbove),
			count(contended, "node"))
	}
	return text
}

// keptText says of what nodes the winner is one, where Prefer has left some behind.
func (w wording) keptText() string {
	if w.choice.Kept == 0 || w.choice.Kept == w.choice.Candidates {
		return ""
	}
	return fmt.Sprintf("; %d of %s break the least of its soft rules", w.choice.Kept, count(w.choice.Candidates, "node"))
}

// leastText is of a winner that alone breaks the least.
func (w wording) leastText() string {
	name := w.input.Name(w.choice.Node)
	if w.choice.RunnerUp < 0 {
		return name + " alone breaks the least of the VM's soft rules"
	}
	other, there := w.choice.RunnerUp, w.input.Name(w.choice.RunnerUp)
	if w.wanting.Contended(other) && !w.wanting.Contended(w.choice.Node) {
		return fmt.Sprintf("%s alone breaks the least of the VM's soft rules; %s is contended: %s", name, there, w.waitingText(other))
	}
	for i, wish := range w.wanting.By {
		if here, behind := w.wanting.Scores[i][w.choice.Node], w.wanting.Scores[i][other]; here != behind {
			return fmt.Sprintf("%s alone breaks the least of the VM's soft rules: it weighs %s by %s, %s %s", name,
				figure(shown(&w.weighers[wish], here)), spoken(&w.weighers[wish]), there, figure(shown(&w.weighers[wish], behind)))
		}
	}
	return name + " alone breaks the least of the VM's soft rules"
}

func spoken(w *weigher.Weigher) string { return strings.ReplaceAll(w.Name, "-", " ") }

// waitingText says how long work waits on a node.
func (w wording) waitingText(node int) string {
	return fmt.Sprintf("work waits %s %% of the time, more than %s %%", figure(w.input.Columns.Waiting(node)), figure(w.policy.ContendedAbove))
}

// wishText says why a node stands behind the winner in Prefer; empty where it does not.
func (d *Decision) wishText(node, winner *NodeResult) string {
	if node.Wish == winner.Wish {
		return ""
	}
	if d.Rules != nil && d.Inputs != nil {
		at, found := d.Inputs.Index(node.Node)
		if waits := d.Inputs.Waiting(max(at, 0)); found && d.Rules.ContendedAbove > 0 && waits > d.Rules.ContendedAbove && waits < view.Unknown {
			return fmt.Sprintf("it is contended: work waits %s %% of the time, more than the %s %% above which no soft rule sends a VM to a node",
				figure(waits), figure(d.Rules.ContendedAbove))
		}
	}
	text := "it breaks more of the VM's soft rules than " + winner.Name
	for i := range node.Terms {
		term := &node.Terms[i]
		if asked, _ := weigher.ByName(term.Weigher); term.Key != "" || !asked.Wish {
			continue
		}
		at := slices.IndexFunc(winner.Terms, func(t Term) bool { return t.Key == "" && t.Weigher == term.Weigher })
		if at >= 0 && winner.Terms[at].Raw != term.Raw {
			return withCause(fmt.Sprintf("%s: %s weighs %s here and %s there", text, strings.ReplaceAll(term.Weigher, "-", " "),
				figure(term.Raw), figure(winner.Terms[at].Raw)), tellingText(node, winner, term.Weigher))
		}
	}
	return text
}
