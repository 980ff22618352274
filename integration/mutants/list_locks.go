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
		is: "if !tried || last.holder != trial.Holder {", becomes: "if !tried {",
	},
	{
		name: "one-good-trial-is-enough", file: "coordinator/evidence/locks.go", suite: inEvidence.only("Locks"),
		is: "worse := last.verdict != LocksReach && locks.Verdict != NotShared", becomes: "worse := locks.Verdict == LocksUnknown",
	},
	{
		name: "trials-are-for-ever", file: "coordinator/evidence/locks.go", suite: inEvidence.only("Locks"),
		is: "m.At.Sub(last.at) >= lasts", becomes: "m.At.Sub(last.at) < -lasts",
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
