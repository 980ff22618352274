package placement

import (
	"cmp"
	"iter"
	"slices"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/selector"
	"berth/coordinator/view"
)

// MaxKept is how many nodes a decision keeps the figures of. Each takes about 250 bytes of a replicated record. On a larger
// cluster it keeps keptOfMore: the best candidates, those that would have won without one of the keys or groups, and the
// refused nodes that came closest. So a replay has the same result; the reason counts all nodes.
const MaxKept = 128

// keptOfMore is fewer than MaxKept: where most nodes are left out anyhow, more rows answer no more questions, and the log
// has them at every start.
const keptOfMore = 48

// keptRefused is how many of them are refused nodes, if there are enough candidates.
const keptRefused = 12

// keptOthers is how many of them are kept only because they would have won without one of the keys or groups.
const keptOthers = 12

// Inputs is what a decision was made on: the figures of the nodes, and the customer keys of VMs that the request's own keys
// meet. Nothing else about the cluster matters to it.
type Inputs struct {
	view.Figures

	Met    []rule.Met        `json:"met,omitempty"`
	Groups []rule.Membership `json:"groups,omitempty"` // that had a say
	// Uncovered is, by node, what could not be restarted if nodes failed after the VM had been placed there; nil: all could be.
	Uncovered []rule.Uncovered `json:"uncovered,omitempty"`
	// Shares is set where nodes were left out and several weighers combined: the kept nodes' shares among all nodes.
	Shares []Shares `json:"shares,omitempty"`
}

// columns are the inputs in the form that the engine reads.
func (in *Inputs) columns() *view.Columns {
	columns := &view.Columns{Figures: in.Figures}
	columns.Derive()
	return columns
}

// keeper chooses what a decision that was just made keeps.
type keeper struct {
	*Engine
	choice Choice
}

// keep copies the inputs of the decision that was just made, and tells how many nodes it left out.
func (k keeper) keep() (kept *Inputs, omitted int) {
	columns := k.input.Columns
	nodes := k.worthKeeping()
	kept = &Inputs{Figures: columns.Select(nodes)}
	for _, met := range k.input.Met {
		one := rule.Met{Key: met.Key, Posting: view.Posting{Value: met.Value}}
		at := 0
		for i, node := range nodes {
			for at < len(met.Nodes) && int(met.Nodes[at]) < node {
				at++
			}
			if at < len(met.Nodes) && int(met.Nodes[at]) == node {
				one.Nodes, one.Counts = append(one.Nodes, int32(i)), append(one.Counts, met.Counts[at])
			}
		}
		if len(one.Nodes) > 0 {
			kept.Met = append(kept.Met, one)
		}
	}
	kept.Groups = rule.SelectGroups(k.input.Groups, nodes, k.input.Name)
	kept.Uncovered = k.input.KeepUncovered(nodes)
	if omitted = columns.Len() - len(nodes); omitted > 0 && len(k.scorers) > 1 {
		kept.Shares = k.keepShares(nodes)
	}
	return kept, omitted
}

// keepShares is the shares of some nodes, among all nodes of their round.
func (k keeper) keepShares(nodes []int) []Shares {
	kept := make([]Shares, len(k.scorers))
	for s := range k.scorers {
		kept[s] = Shares{Weigher: k.scorers[s].Name, Shares: make([]float64, len(nodes))}
		for i, node := range nodes {
			if !k.out[node] {
				kept[s].Shares[i] = k.several.shares[s][node]
			}
		}
	}
	return kept
}

// worthKeeping is the nodes that the decision keeps, in order.
func (k keeper) worthKeeping() []int {
	columns := k.input.Columns
	if columns.Len() <= MaxKept {
		all := make([]int, columns.Len())
		for i := range all {
			all[i] = i
		}
		return all
	}
	var kept []int
	for _, node := range []int{k.choice.Node, k.choice.RunnerUp} {
		if node >= 0 {
			kept = append(kept, node)
		}
	}
	for _, id := range []string{k.input.Current, k.input.Pinned, k.input.Home} {
		if node, found := columns.Index(id); found {
			kept = append(kept, node)
		}
	}
	kept = append(kept, k.otherWinners()...)
	refused := nearestRefused(k.Engine, keptOfMore)
	room := keptOfMore - len(kept) - min(keptRefused, len(refused))
	kept = append(kept, k.foremost(room)...)
	kept = append(kept, refused[:min(len(refused), keptOfMore-len(kept))]...)
	slices.Sort(kept)
	return slices.Compact(kept)
}

// otherWinners is the nodes that would have won without one of the keys or groups. A counterfactual names the right node only
// if that node is kept. Where several weighers combine there is none, because nodes that are not kept would count in it.
func (k keeper) otherWinners() []int {
	if k.choice.Node < 0 || k.bypassed() || len(k.scorers) > 1 {
		return nil
	}
	keys := k.input.SystemKeys
	if k.rounds() == nil {
		keys = nil // nothing looks at them
	}
	var others, first []int
	if len(keys) > 0 && k.variesInOnePass() {
		first = k.first(keptOfMore, nil)
	}
	trial := k.trial()
	defer trial.borrow()()
	for v, one := range k.variants() {
		node, found := -1, false
		if v < len(keys) {
			node, found = k.winsWithout(v, first)
		}
		if !found {
			node = trial.on(&one).Node
		}
		if node >= 0 && node != k.choice.Node && !slices.Contains(others, node) && len(others) < keptOthers {
			others = append(others, node)
		}
	}
	return others
}

// variesInOnePass tells whether a system key matters to the gate alone: not inside a round, and not to whether a VM that runs stays.
func (k keeper) variesInOnePass() bool {
	return k.inOnePass() && k.request.IfBetter <= 0 && (len(k.scorers) == 0 || k.scorers[0].Name != policies.SystemScore)
}

// nearestRefused is the refused nodes with the fewest refusals that are not about an amount, those that miss least first.
func nearestRefused(e *Engine, most int) []int {
	if len(e.candidates) == len(e.out) {
		return nil
	}
	nearest := selector.Best(missed(e), most, func(a, b miss) int {
		return cmp.Or(cmp.Compare(a.others, b.others), cmp.Compare(a.short, b.short),
			cmp.Compare(e.input.Name(a.node), e.input.Name(b.node)), cmp.Compare(a.node, b.node))
	})
	nodes := make([]int, len(nearest))
	for i := range nearest {
		nodes[i] = nearest[i].node
	}
	return nodes
}

// miss is how far a refused node is from being a candidate.
type miss struct {
	node   int
	others int     // refusals that are not about an amount
	short  float64 // bytes that it lacks at most
}

// missed are the refused nodes.
func missed(e *Engine) iter.Seq[miss] {
	return func(yield func(miss) bool) {
		for node, out := range e.out {
			if out && !yield(missOf(e, node)) {
				return
			}
		}
	}
}

func missOf(e *Engine, node int) miss {
	one := miss{node: node}
	for c := range e.constraints {
		switch verdict := e.constraints[c].Check(&e.input, node); {
		case verdict.Passed:
		case verdict.Unit == rule.Bytes:
			one.short = max(one.short, verdict.Needed-verdict.Available)
		default:
			one.others++
		}
	}
	return one
}
