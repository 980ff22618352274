package constraint

import (
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// memoryPhysical is FCO's contended free RAM: what is really free on the node now, less the full size of what telemetry
// cannot have seen yet, has to exceed the VM plus the overhead.
var memoryPhysical = Constraint{
	Name: "memory-physical",
	Doc: "Memory that is really free on the node, less the full size of VMs that are on their way or younger than the " +
		"telemetry, exceeds the VM plus the overhead.",
	InRoom: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		age, sampled := in.TelemetryAge(node)
		if !sampled || in.Columns.Known[node]&view.KnowsFree == 0 {
			return rule.Refuse(unknown)
		}
		return exceed(in.Columns.Free.At(node), needed(in, node)).AtAge(age)
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		if refusal.Code == unknown {
			return "the node's free memory could not be read"
		}
		return short(refusal, "are physically free", in, node)
	},
}
