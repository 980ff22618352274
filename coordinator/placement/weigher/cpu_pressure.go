package weigher

import "berth/coordinator/placement/rule"

// cpuPressure is how long work waits for a node's CPUs: the percent of time in which a task waited (PSI, "some" over ten
// seconds). It shows contention that a load average hides, such as that of a few guests that are bound to the same CPUs. A
// pressure that is not known weighs like a full one.
var cpuPressure = Weigher{
	Name:   "cpu-pressure",
	Doc:    "How much of the time work waits for one of the node's CPUs, in percent, as the kernel's pressure stall information has it.",
	Weight: true,
	Load:   true,
	Silent: func(in *rule.Input) bool { return !in.Columns.CPUPressure.Given() },
	Weigh: func(in *rule.Input, node int, _ *[]rule.Term) float64 {
		return 0 - min(in.Columns.CPUPressure.At(node), percent)
	},
	Maximum: func(*rule.Input, int) float64 { return percent },
}
