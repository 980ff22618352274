package main

// fewMutants are bugs in which nodes are asked before a start, of all there are, and how those are found.
var fewMutants = []mutant{
	{
		name: "a-start-asks-no-keeper", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("Verdict"),
		is: "vm.Holder, vm.LastNode, vm.Kept)", becomes: "vm.Holder, vm.LastNode)",
	},
	{
		name: "a-start-believes-few-nodes", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("Verdict"),
		is: "s.MayShow == nil || out.asks", becomes: "s.MayShow == nil",
	},
	{
		name: "a-disk-that-changed-is-not-found", file: "coordinator/inventory/showing.go", suite: inInventory.only("ALaterView"),
		is: "if !slices.Equal(before[0].Sources, now[0].Sources)", becomes: "if len(before[0].Sources) != len(now[0].Sources)",
	},
	{
		name: "a-disk-of-a-second-domain-is-forgotten", file: "coordinator/inventory/showing.go", suite: inInventory.only("ALaterView"),
		is: "i < len(all) && len(gone) > 0", becomes: "i < len(all) && len(gone) > 1",
	},
	{
		name: "only-the-first-disk-is-looked-for", file: "coordinator/evidence/disk_use.go", suite: inEvidence.only("ADiskInUse"),
		is: "for i := range disks {", becomes: "for i := range disks[:1] {",
	},
}
