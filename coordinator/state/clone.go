package state

import (
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// Rows of the database are never changed in place, and readers get copies that share no memory with them. A test walks
// the copies by reflection, so a field added to a record cannot be forgotten here.

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}

func cloneNode(n *cluster.Node) cluster.Node {
	out := *n
	out.Settings.RAMRatio = pointer(n.Settings.RAMRatio)
	out.Settings.CPURatio = pointer(n.Settings.CPURatio)
	out.Settings.Overhead = pointer(n.Settings.Overhead)
	return out
}

func cloneVM(v *cluster.VM) cluster.VM {
	out := *v
	out.Spec.Disks = slices.Clone(v.Spec.Disks)
	out.Spec.Networks = slices.Clone(v.Spec.Networks)
	return out
}

func cloneOperation(o *operation.Operation) operation.Operation {
	out := *o
	out.Excluded = slices.Clone(o.Excluded)
	out.Evidence = slices.Clone(o.Evidence)
	if out.Migration = pointer(o.Migration); out.Migration != nil {
		out.Migration.Downtime = pointer(o.Migration.Downtime)
		out.Migration.Handover = pointer(o.Migration.Handover)
	}
	return out
}

func cloneDecision(row *decisionRow) placement.Decision {
	out := row.Decision
	out.Request.Excluded = slices.Clone(out.Request.Excluded)
	out.Nodes = slices.Clone(out.Nodes)
	for i := range out.Nodes {
		node := &out.Nodes[i]
		node.Constraints = slices.Clone(node.Constraints)
		for j := range node.Constraints {
			constraint := &node.Constraints[j]
			constraint.Needed = pointer(constraint.Needed)
			constraint.Available = pointer(constraint.Available)
			constraint.AgeSeconds = pointer(constraint.AgeSeconds)
		}
		node.Terms = slices.Clone(node.Terms)
		for j := range node.Terms {
			node.Terms[j].Proximity = pointer(node.Terms[j].Proximity)
		}
	}
	return out
}

func copied[T any](row *T) T { return *row }
