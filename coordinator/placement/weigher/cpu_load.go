package weigher

import (
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

const (
	percent    = 100
	useOfAVCPU = 0.1 // of a CPU, as long as nothing better is known (oVirt's VcpuConsumptionPercentage)
)

// cpuLoad is how busy a node's CPUs are, in percent, with what VMs are expected to use that the load cannot show yet. A load
// that is not known weighs like a full one.
var cpuLoad = Weigher{
	Name:   "cpu-load",
	Doc:    "How busy the node's CPUs are, in percent, a tenth of each vCPU added of VMs that the load does not show yet.",
	Weight: true,
	Load:   true,
	Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
		load := 1.0
		if in.Columns.Known[node]&view.KnowsLoad != 0 {
			load = in.Columns.Load.At(node)
		}
		if in.Columns.Coming.Given() && in.Columns.CPUs[node] > 0 {
			load += useOfAVCPU * float64(in.Columns.Coming.At(node)) / float64(in.Columns.CPUs[node])
		}
		return 0 - percent*load
	},
	Maximum: func(*rule.Input, int) float64 { return percent },
}
