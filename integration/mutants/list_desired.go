package main

// desiredMutants break what is told apart: what a VM runs with, and what its next start will use.
var desiredMutants = []mutant{
	{
		name: "what-is-set-counts-at-once", file: "coordinator/model/size.go", suite: inControl.only("AsLargeAsItWasStarted"),
		is: "size := v.RanSize\n", becomes: "size := v.NextSize()\n",
	},
	{
		name: "what-is-set-is-promised-at-once", file: "coordinator/view/accounting.go", suite: inControl.only("AsLargeAsItWasStarted"),
		is: "return vm.RanSize //", becomes: "return vm.NextSize() //",
	},
	{
		name: "fewer-vcpus-beside-berth-are-not-told", file: "coordinator/drift/size.go",
		suite: suite{pkg: "./coordinator/drift"}.only("ChangedBesideBerth"),
		is:    "domain.VCPUs != vm.RanSize.VCPUs", becomes: "domain.VCPUs > vm.RanSize.VCPUs",
	},
	{
		name: "an-accepted-size-is-not-kept", file: "coordinator/api/guests/drift.go", suite: inAPI.only("ASizeIsAccepted"),
		is: "if told == keeps && size != (model.Size{}) {", becomes: "if told == keeps && size == (model.Size{}) {",
	},
	{
		name: "a-missing-libvirt-is-not-named", file: "coordinator/api/vm_state.go", suite: inAPI.only("WhatIsMissingIsNamed"),
		is: "case facts.Liveness == model.Degraded: //", becomes: "case facts.Liveness == model.Degraded && facts.Inventory: //",
	},
	{
		name: "a-sample-of-an-earlier-run-counts", file: "coordinator/inventory/facts.go",
		suite: suite{pkg: "./coordinator/inventory"}.only("ASampleOfAnEarlierRun"),
		is:    "if one.from.After(n.measuredAt) {", becomes: "if one.wire == nil {",
	},
	{
		name: "what-was-set-waits-for-ever", file: "coordinator/operation/start.go", suite: inControl.only("UsesTheSize"),
		is: "t.VM.Pending = changedSince(", becomes: "_ = changedSince(",
	},
	{
		name: "an-older-start-has-no-size", file: "coordinator/api/answer/defer.go", suite: inAPI.only("ThatRunsWaits"),
		is: "after.RanSize = before", becomes: "_ = before",
	},
	{
		name: "an-old-decision-is-credited", file: "coordinator/api/explain/why_here.go", suite: inAPI.only("NoDecisionHasPutIt"),
		is: "if !known || came.Kind != operation.Adopt {", becomes: "if !known || came.Kind == operation.Adopt {",
	},
	{
		name: "a-failed-move-is-not-told", file: "coordinator/api/explain/why_here.go", suite: inAPI.only("NoDecisionHasPutIt"),
		is: "op.Result == operation.Failed &&", becomes: "op.Result == operation.Parked &&",
	},
	{
		name: "why-not-of-long-ago", file: "coordinator/api/explain/why.go", suite: inAPI.only("WhyNotIsJudgedNow"),
		is: `known && message.GetDecisionId() == "" {`, becomes: `known && message.GetVm() == "" {`,
	},
	{
		name: "an-order-for-whenever-its-node-is-back", file: "coordinator/control/lifecycle/act.go", suite: inControl.only("NoOrderForLater"),
		is: "l.Now()) && !request.WhenBack {", becomes: "l.Now()) && request.WhenBack {",
	},
	{
		name: "an-order-is-never-taken-back", file: "coordinator/operation/when_back.go", suite: inControl.only("SilentNodeIsTakenBack"),
		is: "case !op.WhenBack && at", becomes: "case op.WhenBack && at",
	},
	{
		name: "a-given-order-is-cancelled", file: "coordinator/operation/when_back.go", suite: inControl.only("SilentNodeCanBeCancelled"),
		is: "if o.Awaits() {\n\t\treturn Bound", becomes: "if o.Live() {\n\t\treturn Bound",
	},
	{
		name: "what-went-out-has-no-date", file: "coordinator/operation/stop.go", suite: inControl.only("MayNotHaveIsTakenBack"),
		is: ", dated: true", becomes: "",
	},
	{
		name: "a-stop-that-waited-breaks-a-backup", file: "coordinator/control/lifecycle/bound.go", suite: inControl.only("BreaksNoBackup"),
		is: "if op.Kind != operation.Stop || op.Force {", becomes: "if op.Kind == operation.Stop || op.Force {",
	},
	{
		name: "a-stop-that-waited-looks-no-more", file: "coordinator/control/lifecycle/driver.go", suite: inControl.only("LooksAtTheDisksAgain"),
		is: "todo.Commit.VM = o.drifts.Last(", becomes: "_ = o.drifts.Last(",
	},
	{
		name: "a-stop-goes-out-before-the-listing", file: "coordinator/operation/when_back.go", suite: inControl.only("LooksAtTheDisksAgain"),
		is: "unlisted = heard && o.Kind == Stop &&", becomes: "unlisted = heard && o.Kind == Stop && !o.WhenBack &&",
	},
	{
		name: "one-disk-is-attached-twice", file: "coordinator/control/drifts/unused.go", suite: inControl.only("BeingAttachedIsInUse"),
		is: "if live.VM != vm.ID && slices", becomes: "if live.VM == vm.ID && slices",
	},
	{
		name: "a-lost-mount-keeps-its-vms", file: "coordinator/binding/apart.go", suite: inControl.only("KeepsNoVMFromItsDisk"),
		is: "has && !vm.CameAt().After(left)", becomes: "has && vm.CameAt().IsZero() && left.IsZero()",
	},
	{
		name: "a-late-order-is-begun", file: "agent/jobs/jobs.go", suite: inJobs.only("NeverDoes"),
		is: "case j.isTakenBack():", becomes: "case j.isTakenBack() && j.takenUp:",
	},
	{
		name: "what-has-begun-is-called-off", file: "agent/jobs/journal.go", suite: inJobs.only("HasBegunIsNotTakenBack"),
		is: "command.GetStep())) != nil {\n\t\t\treturn nil", becomes: "command.GetStep())) == nil {\n\t\t\treturn nil",
	},
	{
		name: "a-taken-back-order-is-forgotten", file: "agent/jobs/journal.go", suite: inJobs.only("NeverDoes"),
		is: "\t\tnever = true\n\t\treturn conclude(", becomes: "\t\tnever = true\n\t\tif never {\n\t\t\treturn nil\n\t\t}\n\t\treturn conclude(",
	},
	{
		name: "a-silent-node-is-ordered", file: "coordinator/operation/when_back.go", suite: inControl.only("UntilItsNodeIsBack"),
		is: "heard := node.Liveness.Answers()", becomes: "heard := !node.Liveness.Answers()",
	},
	{
		name: "a-foreign-start-is-as-recorded", file: "coordinator/operation/adopt.go", suite: inOperation.only("AsLargeAsItsNode"),
		is: "t.VM.RanSize, t.VM.Ballooned = model.Size{}, false", becomes: "_ = model.Size{}",
	},
	{
		name: "a-silent-node-is-not-told-to-members", file: "coordinator/api/lastknown/heard.go", suite: inLastKnown,
		is: "State: wire.Liveness(facts.Liveness)", becomes: "State: wire.Liveness(model.Up)",
	},
	{
		name: "a-node-that-came-later-is-up", file: "coordinator/api/lastknown/soft.go", suite: inLastKnown,
		is: "told != nil && told.HasNode(id); facts.DomainsKnown", becomes: "true; facts.DomainsKnown",
	},
	{
		name: "edits-of-groups-are-not-followed", file: "coordinator/control/plans/holding.go",
		suite: suite{pkg: "./coordinator/control/plans"}.only("GroupsAreMarked"),
		is:    "edited = edited || !sameRules(&was, &is)", becomes: "edited = edited && sameRules(&was, &is)",
	},
	{
		name: "what-was-known-is-taken-for-now", file: "coordinator/api/lastknown/keeper.go", suite: inLastKnown,
		is: "case digest != \"\" && digest == k.digest:", becomes: "case digest == k.digest || digest != \"\":",
	},
	{
		name: "what-nobody-tells-is-down", file: "coordinator/view/shown.go", suite: inView.only("OfHowManyVMs"),
		is: "untold += node.ran + len(node.odd)", becomes: "untold += node.ran",
	},
}
