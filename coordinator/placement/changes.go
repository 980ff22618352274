package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/selector"
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

// remedies finds what would have given a decision that was just made another result. Each is tried before it is told.
type remedies struct {
	*Engine
	choice Choice
}

// forRefusal finds, for each kind, the smallest change that alone lets the refused request fit. Each is tried before it is
// reported. Only a view shows which VM would have to move. If no candidate gets into a round, another node may.
func (r remedies) forRefusal(view *view.View) []Change {
	var changes []Change
	if r.choice.FailedPhase == PhaseSystem {
		changes = r.systemChanges()
	}
	for c := range r.constraints {
		changes = r.firstThatFits(changes, r.relaxations(c))
	}
	changes = r.firstThatFits(changes, r.overheads())
	changes = r.firstThatFits(changes, r.sizes())
	if view != nil {
		changes = append(changes, r.moves(view)...)
	}
	return changes
}

// trial decides again under the same policy, with something changed. It has memory of its own.
type trial struct {
	Engine
	asked *Engine // whose decision it varies
}

func (e *Engine) trial() *trial { return &trial{Engine: Engine{compiled: e.compiled}, asked: e} }

// firstThatFits tries the cheapest attempts, each on its node alone, and appends the first that fits.
func (r remedies) firstThatFits(changes []Change, attempts []attempt) []Change {
	attempts = selector.Best(slices.Values(attempts), maxTries, func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(r.input.Name(a.node), r.input.Name(b.node)), cmp.Compare(a.node, b.node))
	})
	trial := r.trial()
	for i := range attempts {
		if trial.takes(attempts[i].node, r.request, attempts[i].apply) {
			return append(changes, attempts[i].change)
		}
	}
	return changes
}

// takes tells whether a node of the decision would take the request after the change.
func (t *trial) takes(node int, request *Request, apply func(*view.Figures, *rule.Input)) bool {
	alone := []int{node}
	columns := &view.Columns{Figures: t.asked.input.Columns.Select(alone)}
	t.prepare(columns, t.asked.at, request, 0)
	t.input.Groups = rule.SelectGroups(t.asked.input.Groups, alone, t.asked.input.Name)
	t.input.Headroom = t.asked.input.Headroom
	if apply != nil {
		apply(&columns.Figures, &t.input)
	}
	if t.input.Headroom != nil {
		return false // one node alone does not show whether VMs could be restarted
	}
	columns.Derive()
	t.input.Resolve()
	t.input.Settle()
	return t.choose().Node == 0
}

// relaxations is the ways to lift the refusals of one constraint where no other one refuses.
func (r remedies) relaxations(c int) []attempt {
	if r.constraints[c].Relax == nil {
		return nil
	}
	var attempts []attempt
	for node, out := range r.out {
		if !out {
			continue
		}
		verdict := r.constraints[c].Check(&r.input, node)
		if verdict.Passed || r.refusals(node) != 1 {
			continue
		}
		if change, possible := r.constraints[c].Relax(&r.input, node, verdict); possible {
			attempts = append(attempts, attempt{
				change: Change{Kind: r.constraints[c].Name, Text: change.Text, Node: r.input.Columns.IDs[node]},
				node:   node, cost: change.Cost, apply: change.Apply,
			})
		}
	}
	return attempts
}

// refusals is the number of constraints that refuse the node.
func (r remedies) refusals(node int) int {
	refusals := 0
	for c := range r.constraints {
		if !r.constraints[c].Check(&r.input, node).Passed {
			refusals++
		}
	}
	return refusals
}

// memoryLeft is the smaller of the node's free amounts of memory; false if anything else than memory is missing.
func (r remedies) memoryLeft(node int) (left units.Bytes, only bool) {
	least := math.Inf(1)
	for c := range r.constraints {
		switch verdict := r.constraints[c].Check(&r.input, node); {
		case verdict.Unit == rule.Bytes && r.constraints[c].InRoom: // of memory
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
func (r remedies) sizes() []attempt {
	if r.input.Along > 0 { // nobody can say which of them should be smaller
		return nil
	}
	var attempts []attempt
	for node := range r.out {
		left, only := r.memoryLeft(node)
		if !only {
			continue
		}
		size := rule.Rounded(left - r.input.Columns.Overhead[node] - 1) // free memory has to exceed the size
		if size < model.MinVMMemory || size >= r.input.Memory {
			continue
		}
		attempts = append(attempts, attempt{
			change: Change{
				Kind: ChangeSize, Node: r.input.Columns.IDs[node], Figure: float64(size),
				Text: fmt.Sprintf("a VM of %s would fit on %s", rule.WholeUnits(size), r.input.Name(node)),
			},
			node: node, cost: -float64(size),
			apply: func(_ *view.Figures, in *rule.Input) { in.Memory = size },
		})
	}
	return attempts
}

// overheads is the smallest cuts of a node's overhead that would make room.
func (r remedies) overheads() []attempt {
	var attempts []attempt
	for node := range r.out {
		left, only := r.memoryLeft(node)
		overhead := (left - r.input.Memory - 1) / units.MiB * units.MiB
		if !only || left <= r.input.Memory || overhead >= r.input.Columns.Overhead[node] {
			continue
		}
		attempts = append(attempts, attempt{
			change: Change{
				Kind: ChangeOverhead, Node: r.input.Columns.IDs[node], Figure: float64(overhead),
				Text: fmt.Sprintf("with overhead %s, %s would take it", rule.WholeUnits(overhead), r.input.Name(node)),
			},
			node: node, cost: float64(r.input.Columns.Overhead[node] - overhead),
			apply: func(figures *view.Figures, _ *rule.Input) { figures.Overhead[0] = overhead },
		})
	}
	return attempts
}

// systemChanges is the changes that let a candidate through the system rounds.
func (r remedies) systemChanges() []Change {
	var changes []Change
	trial := r.trial()
	for k := range r.input.SystemKeys {
		if !r.input.System[k].Given() {
			continue
		}
		request := *r.request
		request.SystemKeys = without(request.SystemKeys, k)
		choice := trial.Choose(r.input.Columns, r.at, &request, r.seed)
		if choice.Node < 0 {
			continue
		}
		name := r.input.SystemKeys[k].Name
		changes = append(changes, Change{
			Kind: ChangeKey, Key: name, Node: r.input.Columns.IDs[choice.Node],
			Text: fmt.Sprintf("without system key %s, %s would take it", name, r.input.Name(choice.Node)),
		})
	}
	nearest, score := nearestShut(r.Engine)
	final := math.Ceil(score*100-1) / 100 // the highest hundredth below the score
	if final >= score {
		final -= 0.01
	}
	return append(changes, Change{
		Kind: ChangeFinal, Figure: final, Node: r.input.Columns.IDs[nearest],
		Text: fmt.Sprintf("with %s %s, %s would take it", model.SettingFinalMSAV, figure(final), r.input.Name(nearest)),
	})
}

// without is the keys with one of them switched off.
func without(keys []key.Weighted, k int) []key.Weighted {
	keys = slices.Clone(keys)
	keys[k].Weight = 0
	return keys
}
