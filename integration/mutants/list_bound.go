package main

// boundMutants break what is known of guests that cannot move.
var boundMutants = []mutant{
	{
		name: "a-bound-vm-is-moved-by-name", file: "coordinator/control/lifecycle/bound.go", suite: inControl.only("NeverTried"),
		is: "if len(bindings) == 0 {", becomes: "if len(bindings) >= 0 {",
	},
	{
		name: "a-bound-vm-is-drained", file: "coordinator/binding/binding.go", suite: inControl.only("LeavesWhatCannotMove"),
		is: `if len(domain.Bindings) == 0 && !stands && lacks == "" {`, becomes: `if len(domain.Bindings) >= 0 && !stands && lacks == "" {`,
	},
	{
		name: "no-constraint-keeps-a-bound-vm", file: "coordinator/placement/constraint/movable.go", suite: suite{pkg: "./coordinator/placement"},
		is: "if len(in.Bindings) > 0 {", becomes: "if len(in.Bindings) > 99 {",
	},
	{
		name: "an-iso-binds-nothing", file: "coordinator/binding/binding.go", suite: inControl.only("MediaThatAllNodesSee"),
		is: "return InShared(shared, b.Source, node)", becomes: "return InShared(shared, b.Source, node) || b.Name != \"\"",
	},
	{
		name: "a-document-is-never-read-again", file: "agent/hypervisor/documents.go", suite: suite{pkg: "./agent/hypervisor"},
		is: "sum := sha256.Sum256([]byte(xml))", becomes: "sum := sha256.Sum256([]byte(xml[:min(len(xml), 40)]))",
	},
	{
		name: "bindings-are-not-bounded", file: "coordinator/inventory/bindings.go", suite: suite{pkg: "./coordinator/inventory"},
		is: "told = told[:min(len(told), model.MaxBindings)]", becomes: "_ = model.MaxBindings",
	},
	{
		name: "folders-of-other-nodes-free-a-vm", file: "coordinator/drift/look.go", suite: inControl.only("NotUnboundByTheFolders"),
		is: "		facts.Pools, facts.PoolsKnown = nil, true\n", becomes: "		facts = l.around(node)\n",
	},
	{
		name: "a-name-makes-a-volume-its-own", file: "coordinator/drift/local.go",
		suite: suite{pkg: "./coordinator/drift"}.only("VolumesThatBind"),
		is:    "own[disk] || shared[disk.Pool]", becomes: "own[disk] || len(own) > 0 || shared[disk.Pool]",
	},
	{
		name: "a-volume-taken-away-is-in-use", file: "coordinator/evidence/disk_use.go",
		suite: suite{pkg: "./coordinator/evidence"}.only("TakenAway"),
		is:    "if detached(vm, one.source) {", becomes: "if vm == nil {",
	},
	{
		name: "a-file-is-no-volume-untold", file: "coordinator/evidence/disk_source.go",
		suite: suite{pkg: "./coordinator/evidence"}.only("AnotherDomainWritesTo"),
		is:    "if !facts.PoolsKnown && (a.Path", becomes: "if facts == nil && (a.Path",
	},
	{
		name: "a-backup-holds-no-stop", file: "coordinator/control/lifecycle/bound.go", suite: inControl.only("HoldsAStop"),
		is: `if broken == "" {`, becomes: `if broken != "?" {`,
	},
}
