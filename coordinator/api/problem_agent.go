package api

import (
	"fmt"
	"slices"

	"berth/coordinator/evidence"
	"berth/coordinator/operation"
	"berth/shared/capability"
)

// oldAgents counts the nodes whose agents are too old to be told everything, and names the operations that wait for one of them.
func (p problems) oldAgents() []string {
	var names, lines []string
	old := map[string]bool{}
	for _, view := range p.View().Nodes.All() {
		if len(view.Facts.Lacks) > 0 {
			names = append(names, view.Node.Name)
			old[view.Node.ID] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	are, tells := "1 node has an agent", names[0]
	if len(names) > 1 {
		are = fmt.Sprintf("%d nodes have agents", len(names))
	}
	lines = append(lines, fmt.Sprintf("%s of an older release (%s), which are not given all orders: 'berth node show %s' tells what; "+
		"update there with %s", are, evidence.SomeOf(names), tells, capability.Update))
	for _, op := range p.LiveOperations() {
		if (old[op.Source] || old[op.Target]) && op.Result != operation.Parked && p.At.Sub(op.UpdatedAt) > operation.ResendEvery {
			lines = append(lines, fmt.Sprintf("operation %s (%s of VM %s) may wait for an agent that is too old for its order",
				op.ID, op.Kind, op.VMName))
		}
	}
	return lines
}
