package main

// seedMutants are planted bugs that seeds of the simulator have found as real ones, and that tests of the packages catch since.
var seedMutants = []mutant{
	{
		name: "orphans-of-the-last-list-only", file: "agent/hypervisor/orphan.go", suite: inFake.only("NoListHasShown"),
		is: "if uuid := processes[i].UUID; uuid != \"\" {", becomes: "if uuid := processes[i].UUID; uuid == \"?\" {",
	},
	{
		name: "no-late-witnesses", file: "coordinator/control/fencing/witness.go", suite: inControl.only("JustComeBack"),
		is: "append(all[node.ID], all.late(p, node, said)...)", becomes: "all[node.ID]",
	},
	{
		name: "the-wrong-machine-boots-anew", file: "coordinator/evidence/proof.go", suite: inControl.only("WrongMachineHasSaid"),
		is: "facts.Boot != boot && !wrong", becomes: "facts.Boot != boot && (true || wrong)",
	},
	{
		name: "waits-for-what-waits-for-it", file: "coordinator/operation/verdict.go", suite: inOperation.only("EarlierMigration"),
		is: "if t.isLeft(op.Target, target) {", becomes: "if false && t.isLeft(op.Target, target) {",
	},
	{
		name: "a-copy-that-nobody-left-is-none", file: "coordinator/operation/verdict.go", suite: inOperation.only("EarlierMigration"),
		is:      "return paused && seen.Epoch != t.Operation.Epoch && slices.Contains(",
		becomes: "return paused && seen.Epoch != t.Operation.Epoch || slices.Contains(",
	},
	{
		name: "a-start-is-repeated-uncounted", file: "coordinator/operation/driver.go", suite: inOperation.only("LosesTwoHosts"),
		is: "at); lost {", becomes: "at); lost && false {",
	},
	{
		name: "a-stop-is-ordered-before-the-list", file: "coordinator/operation/when_back.go", suite: inControl.only("HasListedItsGuests"),
		is: "return heard && !unlisted, unlisted", becomes: "return heard, false",
	},
	{
		name: "a-stop-waits-for-the-list-for-ever", file: "coordinator/operation/when_back.go", suite: inControl.only("HasListedItsGuests"),
		is:      "case !op.WhenBack && d.input.Unlisted && at.Sub(op.CreatedAt) >= AwaitPatience:",
		becomes: "case d.input.Unlisted:\n\t\treturn Todo{Pause: LookEvery}\n\tcase op.WhenBack && d.input.Unlisted:",
	},
	{
		name: "a-guest-that-starves-is-left-alone", file: "coordinator/evidence/outofband.go", suite: inEvidence.only("StarvesWhereItWasMoved"),
		is: "return one.followed(vm) || starves &&", becomes: "return one.followed(vm) || false && starves &&",
	},
	{
		name: "an-old-guest-that-starves-is-followed", file: "coordinator/evidence/outofband.go",
		suite: inEvidence.only("StarvesWhereItWasMoved"),
		is:    "starves && len(s.Answer.Words) > 0 && !slices", becomes: "starves && !slices",
	},
	{
		name: "a-guest-that-starves-hides-a-newer-one", file: "coordinator/evidence/outofband.go",
		suite: inEvidence.only("StarvesWhereItWasMoved"),
		is:    "> 0 && !slices.ContainsFunc(s.Answer.InTheWay(), elsewhere)", becomes: "> 0 && elsewhere != nil",
	},
	{
		name: "bound-when-somebody-looks", file: "coordinator/control/lifecycle/driver.go", suite: inControl.only("EndOfAStartBinds"),
		is: "if next.Wrote != \"\" {", becomes: "if next.Wrote == \"?\" {",
	},
	{
		name: "what-may-have-run-has-not", file: "coordinator/operation/start.go", suite: inOperation.only("MayHaveRunSaysWhere"),
		is: "if seen.Ended || seen.Unseen ||", becomes: "if seen.Ended && seen.Unseen &&",
	},
	{
		name: "what-ran-before-the-boot-has-not", file: "coordinator/operation/anew.go", suite: inOperation.only("MayHaveRunSaysWhere"),
		is: "t.Operation.TargetBoot, t.Wrote = boot, op.Target", becomes: "t.Operation.TargetBoot = boot",
	},
	{
		name: "a-vm-that-may-have-run-is-forgotten", file: "coordinator/operation/step.go", suite: inOperation.only("KeptThoughItsFirstStart"),
		is: "n.DeleteVM && n.VM.Bound != \"\" {", becomes: "n.DeleteVM && n.VM.Bound == \"?\" {",
	},
	{
		name: "a-failed-start-binds-when-pools-are-known", file: "coordinator/drift/look.go", suite: inControl.only("MayHaveRunBinds"),
		is:      "next.Bind(l.Bind(next.VM, next.Wrote, l.own(next.Wrote)))",
		becomes: "facts := l.Facts(next.Wrote)\n\tnext.Bind(l.Bind(next.VM, next.Wrote, &facts))",
	},
	{
		name: "a-start-binds-when-pools-are-known", file: "coordinator/drift/look.go", suite: inControl.only("EndOfAStartBinds"),
		is: "next.Bind(l.Bind(next.VM, next.Wrote, l.own(next.Wrote)))",
		becomes: "if l.tellsPools(next.Wrote) || next.VM.Holder != next.Wrote {\n" +
			"\t\tnext.Bind(l.Bind(next.VM, next.Wrote, l.own(next.Wrote)))\n\t}",
	},
	{
		name: "what-was-unsure-is-not-looked-at-again", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("ThoughNoPools"),
		is: "return d.Try(ctx, command) && !found.Unsure", becomes: "return d.Try(ctx, command)",
	},
	{
		name: "a-guest-that-ends-at-once-never-ran", file: "agent/jobs/start.go", suite: inJobs.only("StartFails"),
		is: "failed.result.Domain.EndedHere = true", becomes: "failed.result.Domain.EndedHere = false",
	},
	{
		name: "after-a-restore-what-stands-is-the-vm", file: "coordinator/evidence/told.go", suite: inEvidence.only("AfterARestore"),
		is: "if here.mayBeOld(&vm) {", becomes: "if false && here.mayBeOld(&vm) {",
	},
	{
		name: "after-a-restore-its-disks-are-where-it-stands", file: "coordinator/evidence/told.go", suite: inEvidence.only("AfterARestore"),
		is: "!copies[0].complete() || copies[0].mayBeOld(vm) {", becomes: "!copies[0].complete() {",
	},
	{
		name: "a-loss-in-a-move-is-dated-by-the-wall-clock", file: "coordinator/operation/verdict.go",
		suite: inOperation.only("LossDuringAMigration"),
		is:    "if came.IsZero() || fell.IsZero() {", becomes: "if came.IsZero() || !fell.IsZero() {",
	},
	{
		name: "a-loss-is-dated-by-the-wall-clock", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("LeadersOwnClock"),
		is: "seen && here.epoch == vm.Epoch {", becomes: "seen && here.epoch != vm.Epoch {",
	},
	// Every start asks where the VM may be.
	{
		name: "stopped-vms-are-not-asked-about", file: "coordinator/control/lifecycle/startable.go", suite: inControl.only("StoppedVMAsks"),
		is: "if held := heldBy(&answer, vm); held != nil {", becomes: "if held := heldBy(&answer, vm); held != nil || vm.Holder == \"\" {",
	},
	{
		name: "silence-gives-memory-up", file: "coordinator/evidence/word.go", suite: inEvidence.only("MemoryIsKept"),
		is: "case kept: // silence", becomes: "case false && kept: // silence",
	},
	{
		name: "what-is-saved-has-ended", file: "agent/jobs/ended.go", suite: inJobs.only("HowAGuestEnded"),
		is: "case event.Detail == hypervisor.DetailSaved:", becomes: "case event.Kind == hypervisor.DetailSaved:",
	},
	{
		name: "a-silent-last-node-has-nothing-new", file: "coordinator/evidence/word.go", suite: inControl.only("StoppedVMAsks"),
		is: "!s.gone(vm, one) || since(domain.Since, vm)):", becomes: "!s.gone(vm, one)):",
	},
	{
		name: "new-leaders-start-before-nodes-tell", file: "coordinator/control/lifecycle/start.go", suite: inControl.only("StoppedVMAsks"),
		is: "case isEarly(err) && !settled, drifts", becomes: "case isEarly(err) && !settled && err == nil, drifts",
	},
}
