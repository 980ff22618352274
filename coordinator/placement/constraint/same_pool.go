package constraint

import (
	"slices"

	"berth/coordinator/placement/rule"
)

// samePool keeps a VM on the side of a shared pool that its disks are on. Elsewhere there is no such file, or an old one of the same name.
var samePool = Constraint{
	Name:    "same-pool",
	Doc:     "What the node has under the name of the VM's shared pools was not proven to be other storage than that with the VM's disks.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if otherPool(in, node) < 0 {
			return rule.Pass()
		}
		return rule.Refuse("apart")
	},
	Say: func(in *rule.Input, node int, _ rule.Verdict) string { return in.Apart[otherPool(in, node)].Why },
	Sweep: func(in *rule.Input, out []bool) {
		for i := range in.Apart {
			if node, found := in.Columns.Index(in.Apart[i].Node); found && in.Apart[i].Node != in.Current {
				out[node] = true
			}
		}
	},
}

// otherPool finds what sets a node apart; below 0: nothing does. The node that runs the VM has its disks, whatever was tried.
func otherPool(in *rule.Input, node int) int {
	id := in.Columns.IDs[node]
	if id == in.Current {
		return -1
	}
	return slices.IndexFunc(in.Apart, func(one rule.Apart) bool { return one.Node == id })
}
