package constraint

import (
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// The causes of a refusal by cpuModel.
const (
	noModel  = "no_model"
	otherCPU = "other_cpu"
)

// cpuModel keeps a guest from a CPU that lacks what it was shown. One that was passed its host's CPU moves only to the very
// same CPU.
var cpuModel = Constraint{
	Name: "cpu-model",
	Doc: "The node can give its guests the VM's CPU model; of a VM that runs with the CPU of its host passed through, the " +
		"node has that very CPU.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.CPU != "" && in.Columns.IDs[node] != in.Current {
			switch hasModel(in, node) {
			case view.HasIt:
			case view.HasUnknown:
				return in.AsTold(node, rule.Refuse(unknown))
			default:
				return in.AsTold(node, rule.Refuse(noModel))
			}
		}
		if in.PassedCPU != "" && in.Columns.IDs[node] != in.Current {
			switch hostCPU(in, node) {
			case in.PassedCPU:
			case "":
				return in.AsTold(node, rule.Refuse(unknown))
			default:
				return in.AsTold(node, rule.Refuse(otherCPU))
			}
		}
		return rule.Pass()
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		switch {
		case refusal.Code == noModel:
			return "the node's CPU cannot be a " + in.CPU
		case refusal.Code == otherCPU:
			return "the VM has the CPU of its host passed through, and the node has another CPU"
		case in.CPU != "" && hasModel(in, node) == view.HasUnknown:
			return "the node has not told which CPU models it can run"
		default:
			return "the node has not told what CPU it has, and the VM has that of its host passed through"
		}
	},
	Sweep: func(in *rule.Input, out []bool) {
		if in.CPU == "" && in.PassedCPU == "" {
			return
		}
		for node := range out {
			if in.Columns.IDs[node] != in.Current && (in.CPU != "" && hasModel(in, node) != view.HasIt ||
				in.PassedCPU != "" && hostCPU(in, node) != in.PassedCPU) {
				out[node] = true
			}
		}
	},
}

func hasModel(in *rule.Input, node int) view.Has {
	if in.Columns.Models == nil || in.Columns.Models.Has == nil {
		return view.HasUnknown
	}
	return in.Columns.Models.Has[node]
}

func hostCPU(in *rule.Input, node int) string {
	if in.Columns.Models == nil || in.Columns.Models.Hosts == nil {
		return ""
	}
	return in.Columns.Models.Hosts[node]
}
