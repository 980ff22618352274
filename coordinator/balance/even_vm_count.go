package balance

// Parameters of even-vm-count.
const (
	HighVMCount        = "HighVMCount"
	MigrationThreshold = "MigrationThreshold"
	SPMVMCountGrace    = "SPMVMCountGrace"
)

// HighCPU is a parameter of both balancers.
const HighCPU = "HighCPU"

var highCPU = Parameter{
	Name: HighCPU, Default: 80, Least: 1, Most: 100,
	Doc: "How busy a node's CPUs may be, in percent: no VM goes to a node that would be busier with it.",
}

// evenVmCount is oVirt's even distribution by VM count ("Even VM distribution based on VM count per host").
var evenVmCount = Balancer{
	Name: "even-vm-count",
	Doc:  "As many VMs on each node: it takes one from the node that has most when that is over HighVMCount and another node has MigrationThreshold fewer.",
	Unit: "VMs of standard deviation",
	Parameters: []Parameter{
		{
			Name: HighVMCount, Default: 10, Most: 100000, Whole: true,
			Doc: "A node with more VMs than this is overloaded. It is no limit to how many a node may take.",
		},
		{
			Name: MigrationThreshold, Default: 5, Least: 2, Most: 100000, Whole: true,
			Doc:   "How many VMs fewer a node has to have than the one with most before a VM is moved to it.",
			Below: "with 1 two nodes would hand one VM back and forth for ever",
		},
		{
			Name: SPMVMCountGrace, Default: 5, Most: 100000, Whole: true,
			Doc: "How many VMs fewer than others a node is to have that also carries the site's management.",
		},
		highCPU,
	},
	Propose: func(*Situation, func(Proposal) bool) string { return "" },
	Figure:  func(*Situation) float64 { return 0 },
}
