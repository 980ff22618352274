package constraint

import (
	"strconv"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

// uncovered is the code of a refusal for want of headroom.
const uncovered = "uncovered"

// headroom keeps so much free that the highly available VMs of nodes that fail can be restarted on the others.
var headroom = Constraint{
	Name: "headroom",
	Doc: "With the VM on the node, if as many nodes failed as the cluster keeps in spare, all their VMs with ha could be restarted " +
		"on the others; a VM that moves leaves no more of them without a place than there are.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Uncover(node) == nil {
			return rule.Pass()
		}
		return rule.Refuse(uncovered)
	},
	Say: func(in *rule.Input, node int, _ rule.Verdict) string { return SayUncovered(in.Uncover(node)) },
	Relax: func(in *rule.Input, node int, _ rule.Verdict) (rule.Relaxation, bool) {
		return rule.Relaxation{
			Text:  "with " + cluster.SettingSpareNodes + " 0, " + in.Name(node) + " would take it",
			Apply: func(_ *cluster.Figures, in *rule.Input) { in.Headroom, in.Uncovered = nil, nil },
		}, true
	},
	// What another constraint refuses need not be worked out.
	Sweep: func(in *rule.Input, out []bool) {
		if in.Headroom == nil && in.Uncovered == nil {
			return
		}
		for node := range out {
			out[node] = out[node] || in.Uncover(node) != nil
		}
	},
}

// SayUncovered puts in words what could not be restarted if nodes failed.
func SayUncovered(u *rule.Uncovered) string {
	const most = 3
	vms := "VMs"
	if u.Total == 1 {
		vms = "VM"
	}
	return "if " + rule.Enumerate(u.Nodes, len(u.Nodes), cluster.MaxSpareNodes) + " failed, " + strconv.Itoa(u.Total) + " " + vms +
		" with ha (" + u.Memory.String() + ") could not be restarted: " + rule.Enumerate(u.VMs, u.Total, most)
}
