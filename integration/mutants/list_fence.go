package main

// fenceMutants are planted bugs in what fence devices say, and in what they are asked for.
var fenceMutants = []mutant{
	{
		name: "no-veto-of-nodes", file: "coordinator/control/fencing/veto.go", suite: inControl.only("Reaches"),
		is: "reached[i] = done.Reached", becomes: "_ = done.Reached",
	},
	{
		name: "no-veto-of-the-leader", file: "coordinator/control/fencing/veto.go", suite: inControl.only("Reaches"),
		is: "reached[len(peers)] = c.devices.Reach(limited, addresses)", becomes: "c.devices.Reach(limited, addresses)",
	},
	{
		name: "a-machine-reaches-itself", file: "shared/reach/reach.go", suite: suite{pkg: "./shared/reach"},
		is: "return here != there", becomes: "return here != \"\" || there != \"\"",
	},
	{
		name: "the-held-one-has-a-veto", file: "coordinator/control/fencing/veto.go", suite: inControl.only("Reaches"),
		is: "node.ID != asked.ID && !node.Fenced()", becomes: "node.ID == asked.ID && !node.Fenced()",
	},
}
