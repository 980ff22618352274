package main

// agentMutants are planted bugs in what is known of agents of other releases.
var agentMutants = []mutant{
	{
		name: "order-an-old-agent", file: "coordinator/agents/server.go", suite: inAgents.only("OldAgent"),
		is: "Lacks(x.knows, command); len(lacks) > 0 {", becomes: "Lacks(x.knows, command); len(lacks) > 99 {",
	},
	{
		name: "arm-an-old-agents-watchdog", file: "coordinator/agents/lease.go", suite: inAgents.only("OldAgent"),
		is: "case leased && !x.armed.Load() && ", becomes: "case leased && x.armed.Load() && taken == 0 && ",
	},
	{
		name: "an-old-agents-watchdog-counts", file: "coordinator/inventory/session.go", suite: inInventory.only("OldAgent"),
		is: "if slices.Contains(n.lacks, capability.SleptLeases) || ", becomes: "if ",
	},
	{
		name: "begin-what-an-old-agent-cannot", file: "coordinator/control/lifecycle/begin.go", suite: inControl.only("OldAgent"),
		is: "if err := o.tellable(&first); err != nil {", becomes: "if err := o.tellable(&first); err != nil && first.Revision == 0 {",
	},
}
