package main

// agentMutants are planted bugs in what is known of agents of other releases, of nodes that were removed, and of hosts that are sick.
var agentMutants = []mutant{
	// Hosts that are sick and answer.
	{
		name: "sick-nodes-are-fenced-at-once", file: "coordinator/evidence/silence.go", suite: inEvidence.only("SickNode"),
		is: "s.ails() && s.Sick >= s.SickAfter && ", becomes: "s.ails() && ",
	},
	{
		name: "sick-nodes-are-fenced-unasked", file: "coordinator/evidence/silence.go", suite: inEvidence.only("SickNode"),
		is: "s.Liveness == model.Degraded && s.SickAfter > 0 && s.Sick > 0", becomes: "s.Liveness == model.Degraded && s.Sick > 0",
	},
	{
		name: "many-sick-nodes-do-not-count", file: "coordinator/evidence/silence.go", suite: inEvidence.only("SickNode"),
		is: "one.Liveness == model.Suspect || one.ails(),", becomes: "one.Liveness == model.Suspect,",
	},
	{
		name: "a-hanging-disk-is-no-ailment", file: "agent/hoststat/health.go", suite: suite{pkg: "./agent/hoststat"},
		is: "h.now().Sub(one.began) > probeLimit", becomes: "h.now().Sub(one.began) > 1000*probeLimit",
	},
	// Nodes that were removed and speak.
	{
		name: "a-removed-node-is-a-node", file: "coordinator/agents/removed.go", suite: inAgents.only("RemovedNode"),
		is: "	s.removed[x.node] = x.removed\n	return true", becomes: "	s.removed[x.node] = x.removed\n	s.sessions[x.node] = x\n	return true",
	},
	{
		name: "removed-nodes-without-bounds", file: "coordinator/agents/removed.go", suite: inAgents.only("RemovedNode"),
		is: "older == nil && len(s.removed) >= removedAtOnce", becomes: "older == nil && len(s.removed) < 0",
	},
	{
		name: "a-removed-nodes-watchdog-stays-armed", file: "coordinator/agents/removed.go", suite: inAgents.only("RemovedNode"),
		is: "	x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Lease{Lease: &berthv1.Lease{}}})\n", becomes: "",
	},
	{
		name: "a-removed-nodes-copy-runs-on", file: "coordinator/control/outofband/copies.go", suite: inControl.only("RemovedNode"),
		is: "		w.suspendRemoved(ctx, snapshot, &beside)\n", becomes: "",
	},
	{
		name: "a-removed-nodes-copy-is-nobodys", file: "coordinator/evidence/elsewhere.go", suite: inControl.only("RemovedNode"),
		is: "	a.Words = append(a.Words, s.removedWords(vm)...)\n", becomes: "",
	},
	{
		name: "a-removed-nodes-copy-is-not-told", file: "coordinator/evidence/follow.go", suite: inControl.only("RemovedNode"),
		is: "s.besideRemoved(vm, Beside(*vm, s.sighting(&as)))", becomes: "Beside(*vm, s.sighting(&as))",
	},
	// Agents of an older release.
	{
		name: "order-an-old-agent", file: "coordinator/agents/server.go", suite: inAgents.only("OldAgent"),
		is: "Lacks(x.knows, command); len(lacks) > 0 {", becomes: "Lacks(x.knows, command); len(lacks) > 99 {",
	},
	{
		name: "arm-an-old-agents-watchdog", file: "coordinator/agents/lease.go", suite: inAgents.only("OldAgent"),
		is: "case leased && !x.armed.Load() && ", becomes: "case leased && x.armed.Load() && taken == 0 && ",
	},
	{
		name: "an-old-agents-watchdog-counts", file: "coordinator/inventory/session.go", suite: inInventory.only("OldAgent"),
		is: "if slices.Contains(n.lacks, capability.SleptLeases) || ", becomes: "if slices.Contains(n.lacks, capability.SleptLeases) && ",
	},
	{
		name: "begin-what-an-old-agent-cannot", file: "coordinator/control/lifecycle/begin.go", suite: inControl.only("OldAgent"),
		is: "if err := o.tellable(&first); err != nil {", becomes: "if err := o.tellable(&first); err != nil && first.Revision == 0 {",
	},
	{
		name: "what-was-given-up-begins-again", file: "agent/jobs/jobs.go", suite: inJobs.only("GivenUpIsNotBegun"),
		is: "one = &job{Jobs: j, command: command, cancelled: givenUp,", becomes: "one = &job{Jobs: j, command: command,",
	},
	{
		name: "what-was-given-up-goes-on", file: "agent/jobs/jobs.go", suite: inJobs.only("GivenUpIsNotBegun"),
		is: "case one != nil && givenUp:\n\t\tone.cancel()", becomes: "case one != nil && givenUp:",
	},
	{
		name: "nobody-tells-that-it-was-given-up", file: "coordinator/operation/migrate.go", suite: inOperation.only("SuspectIsGivenUp"),
		is: "GivenUp: op.Cancel || op.GivenUp != \"\",", becomes: "GivenUp: op.Cancel,",
	},
}
