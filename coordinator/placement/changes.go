package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
	"berth/shared/units"
)

// maxTries is how many changes of one kind are tried, the smallest first.
const maxTries = 16

// attempt is a change that may turn a refusal into a placement on one node.
type attempt struct {
	change Change
	node   int
	cost   float64 // the smaller, the better
	apply  func(figures *view.Figures, in *rule.Input)
}

// changes finds, for each kind, the smallest change that alone lets the refused request fit. Each is tried before it is
// reported. Only a view shows which VM would have to move. If no candidate gets into a round, another node may.
func (e *Engine) changes(choice Choice, view *view.View) []Change {
	var changes []Change
	if choice.FailedPhase == PhaseSystem {
		changes = e.systemChanges()
	}
	for c := range e.constraints {
		changes = e.firstThatFits(changes, e.relaxations(c))
	}
	changes = e.firstThatFits(changes, e.overheads())
	changes = e.firstThatFits(changes, e.sizes())
	if view != nil {
		changes = append(changes, e.moves(view)...)
	}
	return changes
}

// trial is another engine of the same policy, with memory of its own.
func (e *Engine) trial() *Engine {
	return &Engine{
		policy: e.policy, constraints: e.constraints, roomy: e.roomy, planner: e.planner, thresholds: e.thresholds, gated: e.gated,
		weighers: e.weighers, factors: e.factors, selector: e.selector,
	}
}

// firstThatFits tries the cheapest attempts, each on its node alone, and appends the first that fits.
func (e *Engine) firstThatFits(changes []Change, attempts []attempt) []Change {
	attempts = best(attempts, maxTries, func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(e.input.Name(a.node), e.input.Name(b.node)), cmp.Compare(a.node, b.node))
	})
	trial := e.trial()
	for i := range attempts {
		if trial.takes(e, attempts[i].node, e.request, attempts[i].apply) {
			return append(changes, attempts[i].change)
		}
	}
	return changes
}

// takes tells whether a node of another engine's decision would take the request after the change.
func (e *Engine) takes(asked *Engine, node int, request *Request, apply func(*view.Figures, *rule.Input)) bool {
	alone := []int{node}
	columns := &view.Columns{Figures: asked.input.Columns.Select(alone)}
	e.prepare(columns, asked.at, request, 0)
	e.input.Groups = rule.SelectGroups(asked.input.Groups, alone, asked.input.Name)
	e.input.Headroom = asked.input.Headroom
	if apply != nil {
		apply(&columns.Figures, &e.input)
	}
	if e.input.Headroom != nil {
		return false // one node alone does not show whether VMs could be restarted
	}
	columns.Derive()
	e.input.Resolve()
	e.input.Settle()
	return e.choose().Node == 0
}

// relaxations is the ways to lift the refusals of one constraint where no other one refuses.
func (e *Engine) relaxations(c int) []attempt {
	if e.constraints[c].Relax == nil {
		return nil
	}
	var attempts []attempt
	for node, out := range e.out {
		if !out {
			continue
		}
		verdict := e.constraints[c].Check(&e.input, node)
		if verdict.Passed || e.refusals(node) != 1 {
			continue
		}
		if change, possible := e.constraints[c].Relax(&e.input, node, verdict); possible {
			attempts = append(attempts, attempt{
				change: Change{Kind: e.constraints[c].Name, Text: change.Text, Node: e.input.Columns.IDs[node]},
				node:   node, cost: change.Cost, apply: change.Apply,
			})
		}
	}
	return attempts
}

// refusals is the number of constraints that refuse the node.
func (e *Engine) refusals(node int) int {
	refusals := 0
	for c := range e.constraints {
		if !e.constraints[c].Check(&e.input, node).Passed {
			refusals++
		}
	}
	return refusals
}

// memoryLeft is the smaller of the node's free amounts of memory; false if anything else than memory is missing.
func (e *Engine) memoryLeft(node int) (left units.Bytes, only bool) {
	least := math.Inf(1)
	for c := range e.constraints {
		switch verdict := e.constraints[c].Check(&e.input, node); {
		case verdict.Unit == rule.Bytes && e.constraints[c].InRoom: // of memory
			least = math.Min(least, verdict.Available)
		case !verdict.Passed:
			return 0, false
		}
	}
	if math.IsInf(least, 1) {
		return 0, false
	}
	return units.Bytes(least), true
}

// sizes is the largest VMs that would fit.
func (e *Engine) sizes() []attempt {
	if e.input.Along > 0 { // nobody can say which of them should be smaller
		return nil
	}
	var attempts []attempt
	for node := range e.out {
		left, only := e.memoryLeft(node)
		if !only {
			continue
		}
		size := rounded(left - e.input.Columns.Overhead[node] - 1) // free memory has to exceed the size
		if size < model.MinVMMemory || size >= e.input.Memory {
			continue
		}
		attempts = append(attempts, attempt{
			change: Change{
				Kind: ChangeSize, Node: e.input.Columns.IDs[node], Figure: float64(size),
				Text: fmt.Sprintf("a VM of %s would fit on %s", wholeUnits(size), e.input.Name(node)),
			},
			node: node, cost: -float64(size),
			apply: func(_ *view.Figures, in *rule.Input) { in.Memory = size },
		})
	}
	return attempts
}

// overheads is the smallest cuts of a node's overhead that would make room.
func (e *Engine) overheads() []attempt {
	var attempts []attempt
	for node := range e.out {
		left, only := e.memoryLeft(node)
		overhead := (left - e.input.Memory - 1) / units.MiB * units.MiB
		if !only || left <= e.input.Memory || overhead >= e.input.Columns.Overhead[node] {
			continue
		}
		attempts = append(attempts, attempt{
			change: Change{
				Kind: ChangeOverhead, Node: e.input.Columns.IDs[node], Figure: float64(overhead),
				Text: fmt.Sprintf("with overhead %s, %s would take it", wholeUnits(overhead), e.input.Name(node)),
			},
			node: node, cost: float64(e.input.Columns.Overhead[node] - overhead),
			apply: func(figures *view.Figures, _ *rule.Input) { figures.Overhead[0] = overhead },
		})
	}
	return attempts
}

// systemChanges is the changes that let a candidate through the system rounds.
func (e *Engine) systemChanges() []Change {
	var changes []Change
	trial := e.trial()
	for k := range e.input.SystemKeys {
		if e.input.System[k] == nil {
			continue
		}
		request := *e.request
		request.SystemKeys = without(request.SystemKeys, k)
		choice := trial.Choose(e.input.Columns, e.at, &request, e.seed)
		if choice.Node < 0 {
			continue
		}
		name := e.input.SystemKeys[k].Name
		changes = append(changes, Change{
			Kind: ChangeKey, Key: name, Node: e.input.Columns.IDs[choice.Node],
			Text: fmt.Sprintf("without system key %s, %s would take it", name, e.input.Name(choice.Node)),
		})
	}
	nearest, score := e.nearestShut()
	final := math.Ceil(score*100-1) / 100 // the highest hundredth below the score
	if final >= score {
		final -= 0.01
	}
	return append(changes, Change{
		Kind: ChangeFinal, Figure: final, Node: e.input.Columns.IDs[nearest],
		Text: fmt.Sprintf("with %s %s, %s would take it", model.SettingFinalMSAV, figure(final), e.input.Name(nearest)),
	})
}

// without is the keys with one of them switched off.
func without(keys []key.Weighted, k int) []key.Weighted {
	keys = slices.Clone(keys)
	keys[k].Weight = 0
	return keys
}

// coarse is the size from which on whole GiB are precise enough.
const coarse = 16 * units.GiB

// rounded cuts a size down to what wholeUnits prints, so that the printed size fits.
func rounded(size units.Bytes) units.Bytes {
	if size >= coarse {
		return size / units.GiB * units.GiB
	}
	return size / units.MiB * units.MiB
}

// wholeUnits prints a rounded size.
func wholeUnits(size units.Bytes) string {
	if size >= coarse && size%units.GiB == 0 {
		return fmt.Sprintf("%d GiB", size/units.GiB)
	}
	return fmt.Sprintf("%d MiB", size/units.MiB)
}
