package main

// strayMutants are planted bugs in what is known of VMs that nobody holds, and of nodes that had them.
var strayMutants = []mutant{
	{
		name: "memory-of-a-stopped-vm-is-not-told", file: "coordinator/evidence/outofband.go", suite: suite{pkg: "./coordinator/evidence"},
		is:      "case len(alive) == 0:\n\t\tif saved, found := savedOn(seen.Copies, \"\"); found {",
		becomes: "case len(alive) == 0:\n\t\tif saved, found := savedOn(seen.Copies, \"\"); found && vm.HA {",
	},
	{
		name: "a-stop-where-it-was", file: "coordinator/control/lifecycle/act.go", suite: inControl.only("SaidToBeStopped"),
		is: "left := facts.DomainsKnown && (", becomes: "left := vm.Holder == \"\" && facts.DomainsKnown && (",
	},
	{
		name: "a-stop-of-nothing-is-done", file: "coordinator/control/lifecycle/act.go", suite: inControl.only("RunsBesideBerthIsRefused"),
		is: "|| vm.Holder == \"\" && stops", becomes: "|| vm.Holder != \"\" && stops && len(shown) < 0",
	},
	{
		name: "kept-memory-is-not-written-down", file: "coordinator/evidence/saved.go", suite: inEvidence.only("WrittenDown"),
		is: "return keepers[0]", becomes: "return \"\"",
	},
	{
		name: "kept-memory-is-forgotten", file: "coordinator/evidence/saved.go", suite: inEvidence.only("WrittenDown"),
		is: "told != nil && told.worth != heard:", becomes: "told != nil && told.worth == heard:",
	},
	{
		name: "kept-memory-of-another-leader", file: "coordinator/evidence/saved.go", suite: inEvidence.only("MemoryIsKept"),
		is: "case vm.Kept == h.node.ID:", becomes: "case vm.Kept == h.node.ID && domain != nil:",
	},
	{
		name: "a-stray-is-not-written-down", file: "coordinator/evidence/follow.go", suite: inEvidence.only("SomebodyHasStarted"),
		is: "return s.beside(vm)", becomes: "return vm.Whereabouts",
	},
	{
		name: "a-stray-that-left-is-forgotten", file: "coordinator/evidence/follow.go", suite: inEvidence.only("SomebodyHasStarted"),
		is: "return model.Whereabouts{Missing: s.At}", becomes: "return model.Whereabouts{}",
	},
	{
		name: "a-stray-ended-before-it-began", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "one.facts.DomainsKnown && ending.At.After(seen);", becomes: "one.facts.DomainsKnown && !seen.IsZero();",
	},
	{
		name: "a-strays-late-watch-counts-as-whole", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "case ended && !ending.Whole:", becomes: "case ended && ending.At.IsZero():",
	},
	{
		name: "a-stray-ends-with-any-node", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "case one.worth == off && !one.seenWithout(vm):", becomes: "case one.worth == off:",
	},
	{
		name: "handed-over-whenever", file: "coordinator/evidence/word.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "&& op.Epoch == vm.Epoch", becomes: "",
	},
	{
		name: "what-a-source-lists-later-is-old", file: "coordinator/evidence/word.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "!since(one.facts.InventoryAt, vm) && slices.", becomes: "slices.",
	},
	{
		name: "a-disk-is-where-the-backup-has-it", file: "coordinator/evidence/told.go", suite: inEvidence.only("DiskIsWhere"),
		is: "home = here.Node //", becomes: "_ = here //",
	},
	{
		name: "any-volume-of-the-pool-has-moved", file: "coordinator/evidence/told.go", suite: inEvidence.only("DiskIsWhere"),
		is: "return inPool(one, &facts) == is })", becomes: "return inPool(one, &facts).Pool == is.Pool })",
	},
	{
		name: "the-last-node-need-not-list", file: "coordinator/evidence/word.go", suite: inEvidence.only("WhereAVMMayBe"),
		is:      "case one.worth == speechless && facts.Liveness == model.Up && vm.LastNode == one.node.ID:",
		becomes: "case one.worth == speechless && facts.Liveness == model.Up && vm.LastNode == \"\":",
	},
	{
		name: "a-boot-ends-like-a-person", file: "coordinator/evidence/account.go", suite: inEvidence.only("EndedWithItsHost"),
		is: "out.anew, out.why = true, fmt", becomes: "out.anew, out.why = false, fmt",
	},
	{
		name: "an-ending-of-another-stay", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "return told && h.facts.DomainsKnown && since(ending.At, vm)", becomes: "return told && h.facts.DomainsKnown && !ending.At.IsZero()",
	},
}
