package balance

import "time"

// Parameters of even-load, beside HighCPU.
const (
	HighMemory      = "HighMemory"
	DurationMinutes = "DurationMinutes"
	MinimumGain     = "MinimumGain"
	EvenEnough      = "EvenEnough"
)

// evenLoad is even distribution by CPU and memory.
var evenLoad = Balancer{
	Name:    "even-load",
	Doc:     "CPU and memory evenly used: it takes a VM from a node that has been too busy or too full for a while.",
	Unit:    "sum of the standard deviations of memory, vCPUs and CPU use",
	Settles: 2 * time.Minute,
	Parameters: []Parameter{
		highCPU,
		{
			Name: HighMemory, Default: 80, Least: 1, Most: 100,
			Doc: "How much of a node's memory may be promised or in use, in percent: over it the node is too full, and no VM goes to a node that would be fuller with it.",
		},
		{
			Name: DurationMinutes, Default: 2, Most: 60,
			Doc: "How long a node has to be over a threshold, in minutes, before a VM is taken from it.",
		},
		{
			Name: MinimumGain, Default: 0.01, Least: 1e-6, Most: 1,
			Doc: "How much more even the cluster has to become by one move, times the number of nodes.",
		},
		{
			Name: EvenEnough, Default: 0.1, Least: 0.001, Most: 10,
			Doc: "Below this the cluster counts as even, and a plan ends.",
		},
	},
	Propose: func(*Situation, func(Proposal) bool) string { return "" },
	Figure:  func(*Situation) float64 { return 0 },
}
