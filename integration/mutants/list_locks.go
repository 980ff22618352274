package main

// lockMutants are planted bugs in trying whether locks of files reach other nodes, and in what follows from that.
var lockMutants = []mutant{
	{
		name: "a-lock-that-nobody-sees", file: "coordinator/control/locks/locks.go", suite: inControl.only("LocksOfAShared"),
		is: "case seen.Locked:", becomes: "case seen.Locked || err == nil:",
	},
	{
		name: "no-volume-is-no-news", file: "coordinator/control/locks/locks.go", suite: inControl.only("LocksOfAShared"),
		is: "answer.Code == operation.NoVolume:", becomes: "answer.Code == operation.NoPool:",
	},
	{
		name: "a-trial-with-another-neighbour", file: "coordinator/evidence/locks.go", suite: inEvidence.only("Locks"),
		is: "last, tried := all[pool.ID][trial.pair()]", becomes: "last, tried := all[pool.ID][trial.pair()]; tried = true",
	},
	{
		name: "one-trial-sets-a-pool-apart", file: "coordinator/evidence/apart.go", suite: inEvidence.only("OneTrial"),
		is: "const proof = 2 // trials", becomes: "const proof = 0 // trials",
	},
	{
		name: "a-liar-binds-everybody", file: "coordinator/evidence/apart.go", suite: inEvidence.only("SetApart|Sides"),
		is: "if one.verdict == LocksReach || one.verdict == LocksStay {", becomes: "if one.verdict == LocksStay {",
	},
	{
		name: "a-false-trial-makes-sides", file: "coordinator/evidence/apart.go", suite: inEvidence.only("OneTrial"),
		is:      "return last.verdict == NotShared && open.root(pair.holder) != open.root(pair.witness)",
		becomes: "return last.verdict == NotShared",
	},
	{
		name: "two-liars-part-the-rest", file: "coordinator/evidence/apart.go", suite: inEvidence.only("SetApart"),
		is: "const fewest = 4 // of fewer", becomes: "const fewest = 99 // of fewer",
	},
	{
		name: "the-dead-have-no-side", file: "coordinator/evidence/locks.go", suite: inEvidence.only("ADeadNode"),
		is: "inRing[pair.holder] && inRing[pair.witness] && !due[pair]", becomes: "!due[pair]",
	},
	{
		name: "a-mount-is-not-noticed", file: "coordinator/evidence/locks.go", suite: inEvidence.only("ADeadNode"),
		is: "case last.looked != m.looks(trial):", becomes: "case last.looked != m.looks(trial) && last.why != \"\":",
	},
	{
		name: "silence-is-no-news-of-a-pool", file: "coordinator/evidence/trial.go", suite: inEvidence.only("ADeadNode"),
		is: "verdict == LocksUnknown && before.verdict == NotShared {", becomes: "verdict == LocksUnknown && before.verdict == LocksStay {",
	},
	{
		name: "a-vm-is-started-from-another-file", file: "coordinator/estate/search.go", suite: inControl.only("APoolThat|ARestartStays"),
		is: "option.Request.Apart = binding.Apart(facts, view.Apart(), &vm, name)", becomes: "_ = binding.Apart",
	},
	{
		name: "a-drain-goes-to-another-pool", file: "coordinator/estate/fleet.go", suite: inControl.only("APoolThat"),
		is: "request.Apart = binding.Apart(f.facts, view.Apart(), vm, f.cluster)", becomes: "_ = binding.Apart",
	},
	{
		name: "a-file-lies-in-no-pool", file: "coordinator/binding/apart.go", suite: inControl.only("APoolThat"),
		is: "return inFolder(source.Path, pool.Folder)", becomes: "return false",
	},
	{
		name: "the-dead-node-s-side-is-forgotten", file: "coordinator/binding/apart.go", suite: inControl.only("APoolThat|ARestartStays"),
		is: "home := cmp.Or(vm.Holder, vm.LastNode)", becomes: "home := cmp.Or(vm.Holder)",
	},
	{
		name: "no-constraint-keeps-a-side", file: "coordinator/placement/constraint/same_pool.go", suite: suite{pkg: "./coordinator/placement"},
		is: "found && in.Apart[i].Node != in.Current {", becomes: "found && in.Current == \"none\" {",
	},
	{
		name: "a-new-leader-forgets-sides", file: "coordinator/control/locks/locks.go", suite: inControl.only("TheNextLeaderKnows"),
		is: "l.trials = evidence.Recorded(moment)", becomes: "l.trials = evidence.LockTrials{}",
	},
	{
		name: "trials-are-written-again", file: "coordinator/evidence/recorded.go", suite: inControl.only("TheNextLeaderKnows"),
		is: "		one.At = other.At\n", becomes: "",
	},
	{
		name: "files-stay-in-a-pool-that-is-apart", file: "coordinator/control/lifecycle/driver.go", suite: inControl.only("LeavesNothing"),
		is: "if pool.Apart(source, target) {", becomes: "if pool.Apart(source, source) {",
	},
	{
		name: "one-good-trial-is-enough", file: "coordinator/evidence/locks.go", suite: inEvidence.only("Locks"),
		is: "worse := last.verdict != LocksReach && locks.Verdict != NotShared", becomes: "worse := locks.Verdict == LocksUnknown",
	},
	{
		name: "trials-are-for-ever", file: "coordinator/evidence/locks.go", suite: inEvidence.only("Locks"),
		is: "m.At.Sub(last.last) >= lasts", becomes: "m.At.Sub(last.last) < -lasts",
	},
	{
		name: "ha-without-locks", file: "coordinator/api/estates/ha_locks.go", suite: inAPI.only("HANeeds"),
		is:      "if locks := of(p.Snapshot, &pool); locks.Doubtful() {",
		becomes: "if locks := of(p.Snapshot, &pool); locks.Doubtful() && locks.Why == \"\" {",
	},
	{
		name: "a-lock-that-stays", file: "agent/tasks/lock.go", suite: suite{pkg: "./agent/tasks"},
		is: "return one.release(ctx)", becomes: "return nil",
	},
}
