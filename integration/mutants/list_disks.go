package main

// diskMutants are those about targets of migrations, their journals, and the last copies of disks.
var diskMutants = []mutant{
	{
		name: "resume-without-a-ticket", file: "agent/jobs/ticket.go", suite: inJobs.only("Ticket"),
		is: "promised = e.VM == command.GetVmId() && e.Epoch == command.GetEpoch() && e.Epoch >= floor", becomes: "promised = floor < 1<<60",
	},
	{
		name: "ticket-of-an-older-leader", file: "agent/jobs/ticket.go", suite: inJobs.only("Ticket"),
		is:      "if text == nil || command.GetTerm() < number(tx.Bucket(bucketMeta).Get(keyTerm)) {",
		becomes: "if text == nil {",
	},
	{
		name: "forget-an-answer-that-was-not-written", file: "agent/jobs/jobs.go", suite: inJobs.only("Ticket"),
		is: "j.unwritten.keep(j.command, done.result)", becomes: "_ = done.result",
	},
	{
		name: "a-small-entry-is-room", file: "agent/jobs/ticket.go", suite: inJobs.only("SmallEntry"),
		is: "if err != nil || try {", becomes: "if err != nil || true {",
	},
	{
		name: "copy-without-a-ticket", file: "coordinator/operation/ticket.go", suite: inOperation.only("Ticket"),
		is: "if len(t.Operation.Volumes) > 0 {", becomes: "if len(t.Operation.Volumes) >= 0 {",
	},
	{
		name: "copy-on-to-a-suspect-target", file: "coordinator/operation/driver.go", suite: inOperation.only("TurnsSuspect"),
		is: "if (op.Cancel || op.GivenUp != \"\") && now.cancels {", becomes: "if op.Cancel && now.cancels {",
	},
	{
		name: "place-on-a-node-that-ails", file: "coordinator/view/gather.go", suite: inControl.only("TargetAils"),
		is:      "node.Facts.Liveness == model.Up && node.Facts.Ailing != \"\":",
		becomes: "node.Facts.Liveness != model.Up && node.Facts.Ailing != \"\":",
	},
	{
		name: "discard-the-last-copies", file: "coordinator/operation/discard.go", suite: inControl.only("MayBeTheLast"),
		is: "if op.Leftover == op.Target && vm.Copies == nil && vm.Holder != op.Target {", becomes: "if op.Leftover == op.Target {",
	},
	{
		name: "who-keeps-no-guest-keeps-no-disk", file: "coordinator/operation/copies.go", suite: inOperation.only("KeepsNeither"),
		is: "if t.VM.Holder != t.Operation.Target {", becomes: "if t.VM.Holder == \"\" {",
	},
	{
		name: "who-keeps-the-source-has-no-copies-before-it-answers", file: "coordinator/operation/resolve.go",
		suite: inOperation.only("UntilTheSource"),
		is:    "next.SourceEpoch = t.VM.LastEpoch\n\tcase", becomes: "next.SourceEpoch, t.VM.Copies = t.VM.LastEpoch, nil\n\tcase",
	},
	{
		name: "who-keeps-no-guest-of-an-older-release-keeps-no-disk", file: "coordinator/operation/resolve.go",
		suite:   inOperation.only("UntilTheSource"),
		is:      "if keep != KeepTarget && op.CopyStorage && vm.Holder != op.Target {",
		becomes: "if keep == KeepSource && op.CopyStorage && vm.Holder != op.Target {",
	},
	{
		name: "copies-stay-though-the-source-has-its-disks-open", file: "coordinator/operation/discard.go",
		suite: inOperation.only("UntilTheSource"),
		is:    "\t\tsourceKept(t)\n\tdefault", becomes: "\t\tt.end(Failed, t.Operation.Message)\n\tdefault",
	},
	{
		name: "discard-the-disks-of-who-was-handed-over", file: "coordinator/operation/discard.go", suite: inOperation.only("KeepsNeither"),
		is: " && vm.Copies == nil && vm.Holder != op.Target {", becomes: " && vm.Copies == nil {",
	},
	{
		name: "copies-go-before-the-vm-runs", file: "coordinator/evidence/disk_copies.go", suite: inControl.only("MayBeTheLast"),
		is:      "if vm.Copies == nil || vm.Operation != \"\" || vm.Holder == \"\" {\n\t\treturn false",
		becomes: "if vm.Copies != nil {\n\t\treturn true",
	},
	{
		name: "use-copies-that-are-not-whole", file: "coordinator/control/lifecycle/resolve_copies.go",
		suite: inControl.only("DecidesAboutCopies"),
		is:    "request.Keep == copies && !vm.Copies.Whole:", becomes: "request.Keep == copies && vm.Copies == nil:",
	},
	{
		name: "delete-a-vm-with-copies", file: "coordinator/control/lifecycle/resolve_copies.go", suite: inControl.only("DecidesAboutCopies"),
		is: "if vm.Copies == nil {\n\t\treturn nil", becomes: "if vm.Copies != nil || what == \"\" {\n\t\treturn nil",
	},
	{
		name: "leave-what-a-take-over-has-marked", file: "coordinator/evidence/follow.go", suite: inEvidence.only("WasMarked"),
		is: "Copies: s.marked(vm, s.copies(vm))", becomes: "Copies: s.copies(vm)",
	},
	{
		name: "follow-whatever-has-a-later-mark", file: "coordinator/evidence/copy.go", suite: inEvidence.only("WasMarked"),
		is: "op.Kind == operation.Adopt && op.Target == one.Node", becomes: "op.Target == one.Node",
	},
	{
		name: "start-beside-a-stray-with-the-disk", file: "coordinator/control/drifts/unused.go", suite: inControl.only("DiskThatAnother"),
		is: "if !used {\n\t\treturn nil", becomes: "if !used || true {\n\t\treturn nil",
	},
	{
		name: "what-hangs-writes-to-no-disk", file: "coordinator/evidence/disk_use.go", suite: inEvidence.only("DiskThatAnother"),
		is: "if one.worth == off {", becomes: "if one.worth != heard {",
	},
	{
		name: "clear-the-source-by-an-old-answer", file: "coordinator/operation/migrate.go", suite: inOperation.only("DisksOnTheSource"),
		is: "answer.Repeated && len(t.Operation.Replaced) > 0:", becomes: "answer.Repeated && len(t.Operation.Replaced) > 99:",
	},
	{
		name: "forget-the-disks-of-the-source", file: "coordinator/operation/migrate.go", suite: inOperation.only("ALostVM"),
		is: "case had && len(op.Replaced) > 0:", becomes: "case had && len(op.Replaced) > 99:",
	},
	{
		name: "keep-the-other-disks", file: "coordinator/model/vm.go", suite: inControl.only("DecidesAboutTheDisks"),
		is: "if c.Source {", becomes: "if !c.Source {",
	},
	{
		name: "a-second-copy-is-not-told", file: "coordinator/evidence/outofband.go", suite: inEvidence.only("ASecondCopy"),
		is: "here.JobActive || !runs {", becomes: "here.JobActive || runs {",
	},
	{
		name: "a-path-is-no-volume", file: "coordinator/evidence/disk_source.go", suite: inEvidence.only("DiskThatAnother"),
		is: "path.Dir(source.Path) == path.Clean(pool.Path)", becomes: "source.Path == path.Clean(pool.Path)",
	},
	{
		name: "what-a-failed-start-left-stays", file: "coordinator/evidence/failed_start.go", suite: inEvidence.only("DiskThatAnother"),
		is: "if failed && s.At.Before(", becomes: "if failed && s.At.After(",
	},
	{
		name: "nobody-waits-for-what-goes", file: "coordinator/control/drifts/unused.go", suite: inControl.only("FailedOneHasLeft"),
		is: "if failed.GoesSoon(now.At) {", becomes: "if failed.GoesSoon(now.At) && now == nil {",
	},
	{
		name: "a-local-volume-is-everywhere", file: "coordinator/evidence/disk_use.go", suite: inEvidence.only("DiskThatAnother"),
		is: "if len(record.Volume.Nodes) > 0 {", becomes: "if len(record.Volume.Nodes) > 9 {",
	},
	{
		name: "let-run-what-somebody-paused", file: "agent/tasks/tasks.go", suite: suite{pkg: "./agent/tasks", run: "Unpause"},
		is: "domain.Reason != hypervisor.ReasonIOError ||", becomes: "domain.Reason == \"\" ||",
	},
	{
		name: "end-a-guest-that-has-not-crashed", file: "agent/jobs/handover.go", suite: inJobs.only("ACrashedGuest"),
		is: "case !seen.holds(epoch), !seen.in(hypervisor.Crashed):", becomes: "case !seen.holds(epoch):",
	},
	{
		name: "run-on-without-room", file: "coordinator/evidence/starved.go", suite: inControl.only("RunsOnWhenItsPool"),
		is: "found.room = used, pool.Name, used < roomFrom", becomes: "found.room = used, pool.Name, used < 200",
	},
	{
		name: "run-on-again-and-again", file: "coordinator/control/outofband/unpauses.go", suite: inControl.only("RunsOnWhenItsPool"),
		is: "case since < last.rest:", becomes: "case since < 0:",
	},
	{
		name: "a-crashed-guest-is-as-recorded", file: "coordinator/evidence/outofband.go", suite: inControl.only("HasCrashedIsNot"),
		is: "case domain.State == model.DomainCrashed:", becomes: "case domain.State == \"\":",
	},
	{
		name: "restart-after-a-restore", file: "coordinator/evidence/restart.go", suite: inControl.only("WaitsForAWord"),
		is: "if vm.Condition.Is(model.NowhereSeen) {", becomes: "if vm.Condition.Is(model.NowhereSeen) && vm.Restarts > 0 {",
	},
	{
		name: "forget-what-was-to-run-at-the-backup", file: "coordinator/evidence/told.go", suite: inControl.only("WaitsForAWord"),
		is:      "case len(copies) == 0 && vm.Holder == \"\" && vm.Desired != model.Running:",
		becomes: "case len(copies) == 0 && vm.Holder == \"\":",
	},
	{
		name: "a-panic-is-a-departure", file: "agent/jobs/ended.go", suite: inJobs.only("HowLongAGuestWasWatched"),
		is: "if was.panicked && was.ran != nil", becomes: "if was.panicked && was.ran == nil && was.ran != nil",
	},
	{
		name: "restart-for-ever", file: "coordinator/evidence/restart.go", suite: inEvidence.only("KeepsEnding"),
		is: "if vm.Restarts >= LastRestart && ranSince(vm)", becomes: "if vm.Restarts > 9*LastRestart && ranSince(vm)",
	},
	{
		name: "rest-alike-each-time", file: "coordinator/evidence/restart.go", suite: inEvidence.only("KeepsEnding"),
		is: "return RestartWindow << (min(vm.Restarts, LastRestart) - MaxRestarts)", becomes: "return RestartWindow",
	},
}
