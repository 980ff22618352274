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
		is: "l.Inventory.Settled(snapshot, l.Now()) && !whenBack {", becomes: "l.Inventory.Settled(snapshot, l.Now()) && whenBack {",
	},
	{
		name: "an-order-is-never-taken-back", file: "coordinator/operation/when_back.go", suite: inControl.only("SilentNodeIsTakenBack"),
		is: "case !op.WhenBack && at", becomes: "case op.WhenBack && at",
	},
	{
		name: "a-given-order-is-cancelled", file: "coordinator/operation/when_back.go", suite: inControl.only("ThatWasGivenIsNotTakenBack"),
		is: "if o.Awaits() {\n\t\treturn", becomes: "if o.Live() {\n\t\treturn",
	},
	{
		name: "a-silent-node-is-ordered", file: "coordinator/control/lifecycle/heard.go", suite: inControl.only("UntilItsNodeIsBack"),
		is: "return liveness == model.Up ||", becomes: "return liveness != model.Up ||",
	},
	{
		name: "a-foreign-start-is-as-recorded", file: "coordinator/operation/adopt.go", suite: inOperation.only("AsLargeAsItsNode"),
		is: "t.VM.RanSize = model.Size{}", becomes: "_ = model.Size{}",
	},
}
