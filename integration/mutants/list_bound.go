package main

// boundMutants break what is known of guests that cannot move.
var boundMutants = []mutant{
	{
		name: "a-bound-vm-is-moved-by-name", file: "coordinator/control/lifecycle/bound.go", suite: inControl.only("NeverTried"),
		is: "if len(bindings) == 0 {", becomes: "if len(bindings) >= 0 {",
	},
	{
		name: "a-bound-vm-is-drained", file: "coordinator/binding/binding.go", suite: inControl.only("LeavesWhatCannotMove"),
		is: "if domain == nil || len(domain.Bindings) == 0 ||", becomes: "if domain == nil || len(domain.Bindings) >= 0 ||",
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
		name: "bindings-are-not-bounded", file: "coordinator/inventory/bindings.go", suite: suite{pkg: "./coordinator/inventory"},
		is: "told = told[:min(len(told), model.MaxBindings)]", becomes: "_ = model.MaxBindings",
	},
	{
		name: "a-backup-holds-no-stop", file: "coordinator/control/lifecycle/bound.go", suite: inControl.only("HoldsAStop"),
		is: "if len(jobs) == 0 {", becomes: "if len(jobs) >= 0 {",
	},
}
