package constraint

import "berth/coordinator/placement/rule"

// leave makes a VM leave its node: a drain has to empty the node, and a repair is no repair if the VM stays.
var leave = Constraint{
	Name:      "leave",
	Doc:       "The node is not the one that the VM is to leave.",
	Mandatory: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Leave && in.Columns.IDs[node] == in.Current {
			return rule.Refuse("to_be_left")
		}
		return rule.Pass()
	},
	Say: func(*rule.Input, int, rule.Verdict) string { return "the VM is to leave the node" },
	Sweep: func(in *rule.Input, out []bool) {
		if !in.Leave {
			return
		}
		if node, found := in.Columns.Index(in.Current); found {
			out[node] = true
		}
	},
}
