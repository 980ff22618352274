package constraint

import (
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// uncovered is the code of a refusal because headroom is missing.
const uncovered = "uncovered"

// headroom keeps enough free that the highly available VMs of failing nodes can be restarted on the others.
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
			Text:  "with " + model.SettingSpareNodes + " 0, " + in.Name(node) + " would take it",
			Apply: func(_ *view.Figures, in *rule.Input) { in.Headroom, in.Uncovered = nil, nil },
		}, true
	},
	// What another constraint refuses is not computed.
	Sweep: func(in *rule.Input, out []bool) {
		if in.Headroom == nil && in.Uncovered == nil {
			return
		}
		for node := range out {
			out[node] = out[node] || in.Uncover(node) != nil
		}
	},
}

// SayUncovered says in words what could not be restarted if nodes failed.
func SayUncovered(u *rule.Uncovered) string {
	const most = 3
	vms := "VMs"
	if u.Total == 1 {
		vms = "VM"
	}
	return "if " + rule.Enumerate(u.Nodes, len(u.Nodes), view.MaxSpareNodes) + " failed, " + strconv.Itoa(u.Total) + " " + vms +
		" with ha (" + u.Memory.String() + ") could not be restarted: " + rule.Enumerate(u.VMs, u.Total, most)
}
