package constraint

import (
	"math"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
	"berth/shared/units"
)

// VCPUsPromised is the name of a constraint that FCO does not have: there CPU scores and never filters. So the built-in policies have it
// only if they weigh, or if the cluster asks for it.
const VCPUsPromised = "vcpus-promised"

// vcpusPromised takes the vCPUs of VMs for a promise, as their memory is one. Unlike memory they may use up the limit.
var vcpusPromised = Constraint{
	Name: VCPUsPromised,
	Doc: "The vCPUs of every VM on the node or on its way, with those of the VM, are no more than its CPUs times the CPU contention ratio. " +
		"A restart after a failure passes: guests that share CPUs are better than one that is down.",
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Columns.Known[node]&view.KnowsInventory == 0 {
			return rule.Refuse(unknown)
		}
		verdict := rule.Verdict{
			Needed: float64(in.VCPUs), Available: in.Columns.VCPULimit[node] - float64(in.Columns.VCPUs.At(node)), Unit: rule.VCPUs,
		}
		if verdict.Passed = verdict.Needed <= verdict.Available || in.Restart; !verdict.Passed {
			verdict.Code = "short"
		}
		return in.AsTold(node, verdict)
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		if refusal.Code == unknown {
			return "the node's CPUs are not known"
		}
		limit, used := in.Columns.VCPULimit[node], in.Columns.VCPUs.At(node)
		return rule.Count(used, "vCPU") + " of " + units.Figure(limit) + " are promised, and " + rule.Count(in.VCPUs, "vCPU") + " more would be"
	},
	Relax: func(in *rule.Input, node int, refusal rule.Verdict) (rule.Relaxation, bool) {
		if refusal.Code == unknown || in.Columns.CPUs == nil || in.Columns.CPUs[node] <= 0 {
			return rule.Relaxation{}, false
		}
		cpus, wanted := float64(in.Columns.CPUs[node]), float64(in.Columns.VCPUs.At(node)+in.VCPUs)
		ratio := math.Ceil(wanted/cpus*100) / 100
		if ratio*cpus < wanted {
			ratio += 0.01
		}
		if ratio > model.MaxCPURatio {
			return rule.Relaxation{}, false
		}
		return rule.Relaxation{
			Text:  "with " + model.SettingCPURatio + " " + strconv.FormatFloat(ratio, 'g', -1, 64) + ", " + in.Name(node) + " would take it",
			Cost:  ratio,
			Apply: func(figures *view.Figures, _ *rule.Input) { figures.VCPULimit[0] = ratio * cpus },
		}, true
	},
}
