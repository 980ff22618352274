package main

// driftMutants break what is known of guests that people change beside Berth.
var driftMutants = []mutant{
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
		is:      "	case vm.Operation != \"\":\n		return false\n",
		becomes: "	case vm.Operation != \"\":\n		return true\n",
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
