package placement

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
)

// Capacity is how many more VMs of a kind fit.
type Capacity struct {
	Count int  `json:"count"`
	Cut   bool `json:"cut,omitempty"` // it was not counted any further

	// RunsOut is the constraint that refuses the first VM too many on most nodes, or the gate's kind where the system
	// rounds do; empty when the count was cut. Reason says so in words.
	RunsOut string         `json:"runs_out,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Nodes   []NodeCapacity `json:"nodes"` // by node ID
}

// NodeCapacity is how many of them go to one node, and what refuses one more there.
type NodeCapacity struct {
	Node    string           `json:"node"` // ID
	Name    string           `json:"name"`
	Count   int              `json:"count"`
	RunsOut ConstraintResult `json:"runs_out,omitzero"` // what falls short most; none where one more would fit
}

// Capacity places the request again and again on a copy of the columns, each time as a VM of its own that is charged and
// that shows its keys, until nothing fits or there are most. What refuses the next one is what runs out.
func (e *Engine) Capacity(columns *cluster.Columns, at time.Time, request Request, most int) Capacity {
	columns = columns.Clone()
	resident := key.ResidentsOf(request.CustomerKeys)
	counts := make([]int, columns.Len())
	capacity := Capacity{}
	choice := e.Choose(columns, at, &request, 1)
	for choice.Node >= 0 && capacity.Count < most {
		counts[choice.Node]++
		capacity.Count++
		columns.Charge(choice.Node, e.another(columns, &request, resident, capacity.Count))
		choice = e.Choose(columns, at, &request, uint64(capacity.Count)+1)
	}
	capacity.Cut = choice.Node >= 0
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
		capacity.Reason = e.refusalReason(choice)
		if text := lastRoom(capacity.Nodes, capacity.RunsOut); text != "" {
			capacity.Reason = text
		}
	}
	return capacity
}

// another is one more VM like the one that is asked about, of the same groups.
func (e *Engine) another(columns *cluster.Columns, like *Request, resident []cluster.ResidentKey, number int) cluster.Allocation {
	one := cluster.Allocation{Memory: like.Memory, VCPUs: like.VCPUs, Owner: like.Owner, Resident: resident, HA: like.HA}
	if columns.Groups != nil {
		one.Name = "number " + strconv.Itoa(number) + " of these"
		one.VM = like.VM + " " + one.Name
		columns.Groups.Liken(one.VM, like.VM, like.Labels)
	}
	return one
}

// shortest is the refusal that no room was left by: one that is not about an amount, or else the amount that falls short most.
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

// lastRoom says of the node that is nearest to taking one more what falls short there; empty where that is no amount.
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

// mostOften is what runs out on most of the nodes that took a VM, or where none did, on most of all.
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
