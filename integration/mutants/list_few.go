package main

// fewMutants are bugs in which nodes are asked before a start, of all there are.
var fewMutants = []mutant{
	{
		name: "a-start-asks-no-keeper", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("Verdict"),
		is: "vm.Holder, vm.LastNode, vm.Kept)", becomes: "vm.Holder, vm.LastNode)",
	},
	{
		name: "a-start-believes-few-nodes", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("Verdict"),
		is: "s.MayShow == nil || out.asks", becomes: "s.MayShow == nil",
	},
}
