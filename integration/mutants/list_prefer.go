package main

// preferMutants are bugs in what soft rules do before the bands.
var preferMutants = []mutant{
	{
		name: "prefer-within-bands", file: "coordinator/placement/policies/builtin.go", suite: inPlacement.only("Rack"),
		is: "SoftRules: BeforeBands, ContendedAbove:", becomes: "SoftRules: WithinBands, ContendedAbove:",
	},
	{
		name: "prefer-sends-to-the-starving", file: "coordinator/placement/weigher/wishes.go", suite: inPlacement.only("Rack"),
		is: "return len(w.shy) > 0 && w.shy[node]", becomes: "return false",
	},
	{
		name: "prefer-refuses", file: "coordinator/placement/prefer.go", suite: inPlacement.only("BreaksMore"),
		is: "for len(w.Left) > 0 && (choice.Node < 0 || choice.RunnerUp < 0) {", becomes: "for range 1 {",
	},
}
