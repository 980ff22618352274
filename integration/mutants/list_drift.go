package main

// driftMutants break what is known of guests that people change beside Berth.
var driftMutants = []mutant{
	{
		name: "what-was-told-ends-with-the-guest", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("EndedSinceIsKept"),
		is: "told.Devices != nil && told.Node == node", becomes: "told.Devices != nil && told.Node != node",
	},
	{
		name: "a-last-run-is-taken-in-twice", file: "coordinator/control/lifecycle/act.go", suite: inControl.only("DetachedAfterTheEnd"),
		is: "vm.Settled = vm.Epoch", becomes: "vm.Settled = 0",
	},
	{
		name: "a-start-hears-nothing-of-the-last-run", file: "coordinator/control/lifecycle/start.go", suite: inControl.only("NobodyHeardOf"),
		is: "vm = l.drifts.Ran(snapshot, vm)", becomes: "_ = l.drifts.Ran(snapshot, vm)",
	},
	{
		name: "what-was-accepted-is-not-what-runs", file: "coordinator/drift/drift.go", suite: suite{pkg: "./coordinator/drift"},
		is: "ran := ranSince(&vm)", becomes: "ran := vm.Ran",
	},
	{
		name: "a-stray-is-not-looked-at", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("BesideBerthIsWhat"),
		is: "	if len(found) != 1 {\n		return vm.Holder", becomes: "	if len(found) != 9 {\n		return vm.Holder",
	},
	{
		name: "a-change-on-a-deaf-node-is-forgotten", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("ListsNothing"),
		is: "	if !listed {\n		return vm, false", becomes: "	if !listed {\n		return vm, true",
	},
	{
		name: "the-record-is-started", file: "coordinator/operation/start.go", suite: inControl.only("RanWithLast"),
		is: "Persistent: vm.Persistent, Edits: vm.EditsOn(op.Target),", becomes: "Persistent: vm.Persistent,",
	},
	{
		name: "stopped-without-a-look", file: "coordinator/control/lifecycle/act.go", suite: inControl.only("LookedAt"),
		is: `if vm.Holder != "" && request.Kind.Stops() {`, becomes: `if vm.Holder == "" && request.Kind.Stops() {`,
	},
	{
		name: "a-guess-between-two-disks", file: "coordinator/control/lifecycle/drift.go", suite: inControl.only("ChangedUnderADrift"),
		is: `if why == "" {`, becomes: `if why == "" || len(why) > 0 {`,
	},
	{
		name: "a-drift-is-forgotten-in-an-operation", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("LostToAnOperation"),
		is: "takes minutes\n		return false\n", becomes: "takes minutes\n		return true\n",
	},
	{
		name: "a-last-run-is-asked-of-one-node", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("NobodyKnewOf"),
		is: "slices.Backward(d.Inventory.RanOn(vm.ID))", becomes: "[]string{vm.LastNode}",
	},
	{
		name: "a-reboot-hides-a-drift", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("DuringAReboot"),
		is: "op.Kind != operation.Reboot", becomes: "op.Kind != operation.Stop",
	},
	{
		name: "a-changed-record-is-a-drift", file: "coordinator/operation/start.go", suite: inControl.only("ChangedWhileItsVMRuns"),
		is: "t.VM.Ran, t.VM.RanSize = ranWith(&order, t.VM.ID),", becomes: "_, t.VM.RanSize = ranWith(&order, t.VM.ID),",
	},
	{
		name: "an-element-is-believed", file: "coordinator/drift/drift.go", suite: suite{pkg: "./coordinator/drift"},
		is: "if !isWhatItSays(one) {", becomes: "if !isWhatItSays(one) && one.XML == \"\" {",
	},
	{
		name: "edits-are-not-written", file: "agent/jobs/start.go", suite: suite{pkg: "./agent/jobs"}.only("RanWithLast"),
		is:      "xml, err = domxml.EditDevices(xml, edits(j.command.GetStart()))",
		becomes: "_, err = domxml.EditDevices(xml, edits(j.command.GetStart()))",
	},
}
