package placement

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/key"
	"berth/coordinator/view"
)

// Capacity is how many more VMs like the requested one fit.
type Capacity struct {
	Count int  `json:"count"`
	Cut   bool `json:"cut,omitempty"` // counting stopped here

	// RunsOut is what refuses the first VM that does not fit on most nodes: a constraint, or the gate's kind for the system
	// rounds. It is empty when counting stopped before. Reason says it in words.
	RunsOut string         `json:"runs_out,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Nodes   []NodeCapacity `json:"nodes"` // by node ID

	Warnings []string `json:"warnings,omitempty"` // what nodes would come to beyond what they have, although nothing refuses it
}

// NodeCapacity is how many of them go to one node, and what refuses one more there.
type NodeCapacity struct {
	Node    string           `json:"node"` // ID
	Name    string           `json:"name"`
	Count   int              `json:"count"`
	RunsOut ConstraintResult `json:"runs_out,omitzero"` // what is short most; none where one more would fit
}

// Capacity places the request on a copy of the columns again and again until nothing fits or most is reached. Each time it is
// a VM of its own, which is charged and shows its keys. What refuses the next one is what runs out.
func (e *Engine) Capacity(columns *view.Columns, at time.Time, request Request, most int) Capacity {
	columns = columns.Clone()
	resident := key.ResidentsOf(request.CustomerKeys)
	counts := make([]int, columns.Len())
	capacity := Capacity{}
	choice := e.Choose(columns, at, &request, 1)
	for choice.Node >= 0 && capacity.Count < most {
		counts[choice.Node]++
		capacity.Count++
		columns.Charge(choice.Node, another(columns, &request, resident, capacity.Count))
		choice = e.chooseAgain(choice.Node, columns, at, &request, uint64(capacity.Count)+1)
	}
	capacity.Cut, capacity.Warnings = choice.Node >= 0, crowded(columns, counts, &request)
	refusals := make(map[string]int)
	w := &writer{engine: e}
	for node := range counts {
		one := NodeCapacity{Node: columns.IDs[node], Name: e.input.Name(node), Count: counts[node]}
		var found NodeResult
		w.node(&found, node)
		one.RunsOut = shortest(found.Constraints)
		if one.RunsOut.Constraint == "" && choice.FailedPhase == PhaseSystem {
			one.RunsOut = w.belowFinal(e.system[node])
		}
		if one.RunsOut.Constraint != "" {
			refusals[one.RunsOut.Constraint]++
		}
		capacity.Nodes = append(capacity.Nodes, one)
	}
	if !capacity.Cut {
		capacity.RunsOut = mostOften(refusals, capacity.Nodes)
		capacity.Reason = wording{e, choice}.refusal()
		if text := lastRoom(capacity.Nodes, capacity.RunsOut); text != "" {
			capacity.Reason = text
		}
	}
	return capacity
}

// chooseAgain is Choose after a VM like the requested one was charged to a node. Mostly nothing but that node's row differs from the
// decision before, which found it: then the other rows are not looked at again.
func (e *Engine) chooseAgain(node int, columns *view.Columns, at time.Time, request *Request, seed uint64) Choice {
	in := &e.input
	if in.Columns != columns || e.tiered() || len(e.wanting.By) > 0 || len(e.scorers) > 1 || request.IfBetter > 0 ||
		len(in.CustomerKeys) > 0 || len(in.Groups) > 0 || in.Headroom != nil {
		return e.Choose(columns, at, request, seed)
	}
	e.seed = seed
	if slices.ContainsFunc(e.constraints, func(c constraint.Constraint) bool { return !c.Check(in, node).Passed }) {
		e.out[node] = true
		row, _ := slices.BinarySearch(e.candidates, int32(node))
		e.candidates = slices.Delete(e.candidates, row, row+1)
	}
	if e.rounds() != nil {
		e.system[node] = e.gated.Weigh(in, node, nil)
	}
	if len(e.scorers) == 1 {
		e.customer[node] = e.scorers[0].Weigh(in, node, nil)
	}
	return e.scan(true)
}

// another is one more VM like the requested one, in the same groups.
func another(columns *view.Columns, like *Request, resident []model.ResidentKey, number int) view.Allocation {
	one := view.Allocation{Memory: like.Memory, VCPUs: like.VCPUs, Owner: like.Owner, Resident: resident, HA: like.HA}
	if columns.Groups != nil {
		one.Name = "number " + strconv.Itoa(number) + " of these"
		one.VM = like.VM + " " + one.Name
		columns.Groups.Liken(one.VM, like.VM, like.Labels)
	}
	return one
}

// shortest is the refusal that matters most: one that is not about an amount, or else the amount that is short most.
func shortest(results []ConstraintResult) ConstraintResult {
	var found ConstraintResult
	for _, result := range results {
		switch {
		case result.Passed:
		case result.Needed == nil || result.Available == nil:
			return result
		case found.Constraint == "" || *result.Needed-*result.Available > *found.Needed-*found.Available:
			found = result
		}
	}
	return found
}

// lastRoom says what is short on the node that is nearest to taking one more; empty where that is no amount.
func lastRoom(nodes []NodeCapacity, constraint string) string {
	text, least := "", 0.0
	for i := range nodes {
		result := &nodes[i].RunsOut
		if result.Constraint != constraint || result.Needed == nil || result.Available == nil || result.Unit == scoreUnit {
			continue
		}
		if short := *result.Needed - *result.Available; text == "" || short < least {
			text, least = "on "+nodes[i].Name+", "+result.Message, short
		}
	}
	return text
}

// mostOften is what runs out on most of the nodes that took a VM; if none took any, on most of all nodes.
func mostOften(refusals map[string]int, nodes []NodeCapacity) string {
	used := make(map[string]int)
	for i := range nodes {
		if nodes[i].Count > 0 && nodes[i].RunsOut.Constraint != "" {
			used[nodes[i].RunsOut.Constraint]++
		}
	}
	if len(used) > 0 {
		refusals = used
	}
	names := make([]string, 0, len(refusals))
	for name := range refusals {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(refusals[b], refusals[a]), cmp.Compare(a, b)) })
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
