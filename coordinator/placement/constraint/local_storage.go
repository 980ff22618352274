package constraint

import "berth/coordinator/placement/rule"

// localStorage keeps a VM where its disk is: with local storage "there is only one viable choice of node to use" (FCO).
var localStorage = Constraint{
	Name:      "local-storage",
	Doc:       "The node has the VM's disk, where disks cannot be reached from other nodes.",
	Mandatory: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Home == "" || in.Home == in.Columns.IDs[node] {
			return rule.Pass()
		}
		return rule.Refuse("disk_elsewhere")
	},
	Say: func(in *rule.Input, _ int, _ rule.Verdict) string {
		home := in.Home
		if node, found := in.Columns.Index(in.Home); found {
			home = in.Name(node)
		}
		return "the VM's disk is on " + home
	},
	Sweep: func(in *rule.Input, out []bool) { onlyOne(in, in.Home, out) },
}
