package placement

import (
	"fmt"
	"slices"
)

// tiered tells whether the candidates may stand in more than one tier.
func (e *Engine) tiered() bool {
	_, last := e.input.Columns.Index(e.request.Last)
	return last || e.planned()
}

// planned tells whether the planner cuts the candidates into tiers. It cannot where it would look at the VMs of nobody.
func (e *Engine) planned() bool {
	return e.plan.Tiers != nil && (!e.plan.Accounts || e.input.Columns.AccountVMs != nil)
}

// tiers cuts the candidates into tiers: the node that the VM ran on last is one of its own, if it is to be tried first.
func (e *Engine) tiers(admitted []int) [][]int {
	var tiers [][]int
	if last, found := e.input.Columns.Index(e.request.Last); found && slices.Contains(admitted, last) {
		tiers = append(tiers, []int{last})
		admitted = slices.DeleteFunc(slices.Clone(admitted), func(node int) bool { return node == last })
	}
	switch {
	case len(admitted) == 0:
		return tiers
	case e.planned():
		return append(tiers, e.plan.Tiers(&e.input, admitted)...)
	default:
		return append(tiers, admitted)
	}
}

// accountText says how many of the customer's VMs the chosen node has, where that decided; empty where it did not.
func (w wording) accountText() string {
	if w.plan.Tier == "" || !w.planned() || w.bypassed() || w.choice.Node < 0 {
		return ""
	}
	return fmt.Sprintf("%s of the customer, %s", count(w.input.Columns.AccountVMs[w.choice.Node], "VM"), w.plan.Tier)
}

// accountOf tells how many of the customer's VMs a node has, where the planner looked at that.
func (d *Decision) accountOf(node string) string {
	if d.Inputs == nil || d.Inputs.AccountVMs == nil {
		return ""
	}
	at, kept := d.Inputs.Index(node)
	if !kept {
		return ""
	}
	return fmt.Sprintf(" with %s of the customer", count(d.Inputs.AccountVMs[at], "VM"))
}
