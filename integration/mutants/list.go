package main

// Suites by package.
var (
	inJobs       = suite{pkg: "./agent/jobs"}
	inState      = suite{pkg: "./coordinator/state"}
	inConsensus  = suite{pkg: "./coordinator/consensus"}
	inIdentities = suite{pkg: "./coordinator/identities"}
	inOperation  = suite{pkg: "./coordinator/operation"}
	inInventory  = suite{pkg: "./coordinator/inventory"}
	inAgents     = suite{pkg: "./coordinator/agents"}
	inControl    = suite{pkg: "./coordinator/control"}
	inEvidence   = suite{pkg: "./coordinator/evidence"}
	inModel      = suite{pkg: "./coordinator/model"}
	inView       = suite{pkg: "./coordinator/view"}
	inPlacement  = suite{pkg: "./coordinator/placement"}
	inBalance    = suite{pkg: "./coordinator/balance"}
	inAPI        = suite{pkg: "./coordinator/api"}
	inLastKnown  = suite{pkg: "./coordinator/api/lastknown"}
	inDaemon     = suite{pkg: "./coordinator/daemon"}
	inFake       = suite{pkg: "./agent/hypervisor/fake"}
	inLibvirt    = suite{pkg: "./agent/hypervisor/libvirt"}
	inFaults     = suite{pkg: "./integration/faults"}
)

// only is the part of a suite whose tests have names that match.
func (s suite) only(run string) suite { return suite{pkg: s.pkg, run: run, set: s.set} }

// with is the suite with a variable of the environment, NAME=value.
func (s suite) with(set string) suite { return suite{pkg: s.pkg, run: s.run, set: set} }

// mainMutants are those without a file of their own. Their names say what is left out or done wrong.
var mainMutants = []mutant{
	// Agents: epochs, terms, journal, evidence.
	{
		name: "skip-epoch-check", file: "agent/jobs/journal.go", suite: inJobs,
		is: "case epoch < floor && !back:", becomes: "case false && epoch < floor && !back:",
	},
	{
		name: "skip-term-check", file: "agent/jobs/journal.go", suite: inJobs,
		is: "case term < known:", becomes: "case false && term < known:",
	},
	{
		name: "act-without-intent", file: "agent/jobs/journal.go", suite: inJobs,
		is:      "if takenUp = intents.Get(key) != nil; takenUp {",
		becomes: "if takenUp = intents.Get(key) != nil; takenUp || true {",
	},
	{
		name: "act-twice", file: "agent/jobs/jobs.go", suite: inJobs,
		is: "case before != nil:", becomes: "case false && before != nil:",
	},
	{
		name: "bare-look-as-evidence", file: "agent/jobs/look.go", suite: inJobs,
		is:      "if err := j.journal.refuseStarts(j.command.GetVmId(), j.command.GetEpoch(), j.now()); err != nil {",
		becomes: "if err := error(nil); err != nil {",
	},
	{
		name: "absent-while-starting", file: "agent/jobs/look.go", suite: inJobs,
		is: "case j.starting(j.command.GetVmId()) || !positive:", becomes: "case false && !positive:",
	},
	{
		name: "absent-without-waiting", file: "agent/jobs/look.go", suite: inJobs,
		is: "case now.Sub(since) < surelyAbsent:", becomes: "case now.Sub(since) < 0:",
	},
	// Guests that libvirt has forgotten.
	{
		name: "absent-by-the-list-alone", file: "agent/hypervisor/orphan.go", suite: inJobs.only("Forgot"),
		is: "return processes[at].orphan(uuid, name), nil", becomes: "return domain, err",
	},
	{
		name: "off-by-the-definition-alone", file: "agent/hypervisor/orphan.go", suite: inFake,
		is:      "if runs := err == nil && domain.State != Shutoff; runs ||",
		becomes: "if runs := err == nil; runs ||",
	},
	{
		name: "list-without-processes", file: "agent/hypervisor/orphan.go", suite: inFake,
		is: "processes, expected); len(missing) > 0 {", becomes: "processes, expected); len(missing) > 99 {",
	},
	{
		name: "hidden-processes-are-none", file: "agent/hypervisor/processes/processes.go", suite: suite{pkg: "./agent/hypervisor/processes"},
		is:      `if _, err := os.ReadFile(filepath.Join(s.Proc, "1", "cmdline")); err != nil {`,
		becomes: `if _, err := os.ReadFile(filepath.Join(s.Proc, "1", "cmdline")); err != nil && s.Proc == "" {`,
	},
	{
		name: "an-orphan-holds-nothing", file: "coordinator/model/facts.go", suite: inControl.only("Forgot"),
		is: "DomainCrashed, DomainUnknown, DomainOrphan:", becomes: "DomainCrashed, DomainUnknown:",
	},
	{
		name: "no-alarm-for-an-orphan", file: "coordinator/evidence/outofband.go", suite: inControl.only("Alarms"),
		is:      "slices.IndexFunc(alive, Copy.IsOrphan); at >= 0 {",
		becomes: "slices.IndexFunc(alive, Copy.IsOrphan); at > 99 {",
	},
	{
		name: "an-orphan-is-judged", file: "coordinator/operation/operation.go", suite: inOperation.only("Orphan"),
		is: "if shown == model.DomainOrphan {", becomes: "if shown == model.DomainAbsent {",
	},
	{
		name: "failed-start-may-come-late", file: "agent/jobs/start.go", suite: inJobs,
		is:      "return done{result: failure(command, err, seen.message()), obeyFrom: command.GetEpoch() + 1}",
		becomes: "return done{result: failure(command, err, seen.message())}",
	},
	{
		name: "resume-another-epoch", file: "agent/jobs/handover.go", suite: inJobs,
		is: "case seen.known() && !seen.holds(j.command.GetEpoch()):\n" +
			"\t\t\treturn done{result: doubt(j.command, otherEpoch(j.command, seen), seen.message()), again: true}\n" +
			"\t\tcase seen.in(hypervisor.Running):",
		becomes: "case seen.in(hypervisor.Running):",
	},
	{
		name: "discard-what-runs", file: "agent/jobs/handover.go", suite: inJobs,
		is:      "case seen.in(hypervisor.Running):\n\t\treturn seen, fmt.Errorf(\"%w: it runs\", hypervisor.ErrInvalidState)\n",
		becomes: "",
	},
	{
		name: "left-while-its-process-lives", file: "agent/hypervisor/processes/life.go", suite: inLibvirt.only("Departure"),
		is:      "return conn.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })",
		becomes: "return conn.Read(func(uintptr) bool { return true })",
	},
	{
		name: "left-though-it-ran-on", file: "agent/hypervisor/departures/departures.go", suite: inLibvirt.only("Departure"),
		is: "one == nil || !one.stands || one.HasLeft()", becomes: "one == nil || one.HasLeft()",
	},
	{
		name: "left-by-half-the-news", file: "agent/hypervisor/libvirt/departure.go", suite: inLibvirt.only("Departure"),
		is: "if err := h.watch.toldAll(); err != nil {", becomes: "if err := error(nil); err != nil {",
	},
	{
		name: "ask-a-guest-to-restart-again", file: "agent/jobs/reboot.go", suite: inJobs.only("Reboot"), quick: true,
		is: "if asked != nil {", becomes: "if asked != nil && asked.GetStep() == 0 {",
	},
	{
		name: "never-end-what-is-out-of-sight", file: "agent/jobs/migration.go", suite: inJobs.only("DoesNotGoThrough"),
		is: "m.endIfDue(ctx, hypervisor.Job{})", becomes: "",
	},
	{
		name: "source-keeps-its-epoch", file: "agent/jobs/migrate.go", suite: inJobs,
		is: "return done{result: answer, obeyFrom: command.GetEpoch() + 1}", becomes: "return done{result: answer}",
	},

	// Replicated state.
	{
		name: "map-order-in-apply", file: "coordinator/state/apply.go", suite: inState.only("OneHash"),
		is:      "for _, key := range slices.Sorted(maps.Keys(command.Meta)) {",
		becomes: "for _, key := range slices.Collect(maps.Keys(command.Meta)) {",
	},
	{
		name: "map-order-in-forget", file: "coordinator/state/members.go", suite: inState.only("OneHash"),
		is:      "for _, id := range slices.Sorted(maps.Keys(resources)) {",
		becomes: "for _, id := range slices.Collect(maps.Keys(resources)) {",
	},
	{
		name: "drop-idempotency-key", file: "coordinator/state/apply.go", suite: inState.only("TheSameKey"), quick: true,
		is: "\t\t\tw.remember(command)\n", becomes: "",
	},
	{
		name: "accept-stale-revision", file: "coordinator/state/check.go", suite: inState.only("Expectations"),
		is: "revision != e.Revision {", becomes: "revision != e.Revision && e.Revision == 0 {",
	},
	{
		name: "two-operations-of-one-vm", file: "coordinator/state/check.go", suite: inState.only("OneLiveOperation"),
		is: "case len(live) > 1:", becomes: "case len(live) > 2:",
	},
	{
		name: "epoch-goes-back", file: "coordinator/state/check.go", suite: inState.only("EpochNeverDecreases"),
		is: "exists && vm.Epoch < before.Epoch {", becomes: "exists && vm.Epoch+1 < before.Epoch {",
	},
	{
		name: "deleted-vm-loses-its-epochs", file: "coordinator/state/apply.go", suite: inState.only("EpochNeverDecreases"),
		is: "ok && record.Table == VMs && vm.EpochsGiven() > 0 {", becomes: "ok && record.Table == VMs && vm.EpochsGiven() > 1<<40 {",
	},
	{
		name: "restore-without-epoch-jump", file: "coordinator/state/quarantine.go", suite: inState.only("Quarantine|Restor|Backup"),
		is:      "present.LastEpoch(vms[i].ID)) + epochJump",
		becomes: "present.LastEpoch(vms[i].ID)) + 1",
	},
	{
		name: "restore-without-quarantine", file: "coordinator/state/quarantine.go", suite: inState.only("Quarantine|Restor|Backup"),
		is: "meta[MetaQuarantine] = reason", becomes: "delete(meta, MetaQuarantine)",
	},
	{
		name: "a-wrong-clock-stays", file: "coordinator/state/clock.go", suite: inState.only("Contradict"),
		is: "c.Leaps == clockProof {", becomes: "c.Leaps == clockProof && at.After(c.Clock) {",
	},
	{
		name: "times-to-come-stay", file: "coordinator/evidence/stamps.go", suite: inEvidence.only("NotComeYet"),
		is: "&own.StartedAt, &own.MovedAt, &own.RestartedAt", becomes: "&own.MovedAt",
	},
	{
		name: "one-stamp-moves-the-clock", file: "coordinator/state/clock.go", suite: inState.only("2099|BothSides"),
		is: "if !apart(at, c.Clock) {", becomes: "if true || !apart(at, c.Clock) {",
	},
	{
		name: "skip-snapshot-sum", file: "coordinator/state/load.go", suite: inState,
		is: "if got != uint64(want) {", becomes: "if got != uint64(want) && got == 0 {",
	},

	// Raft.
	{
		name: "forget-barrier-of-reads", file: "coordinator/consensus/propose.go", suite: inConsensus.only(
			"TestSchedules|StrongRead|EndedContext|WithoutAQuorum",
		),
		is: "if c.ready.Load() == term {", becomes: "if c.ready.Load() <= term {",
	},
	{
		name: "stale-read-of-an-old-leader", file: "coordinator/consensus/propose.go",
		suite:   inConsensus.only("TestSchedules$").with("SCHEDULES=3000"),
		is:      "return r.VerifyLeader().Error() })); err != nil {",
		becomes: "return nil })); err != nil {",
	},
	{
		name: "unknown-as-not-sent", file: "coordinator/consensus/propose.go", suite: inConsensus.only(
			"TestSchedules|StrongRead|EndedContext|WithoutAQuorum",
		),
		is: "return fmt.Errorf(\"%w: %w\", ErrUnknown, err)\n}", becomes: "return fmt.Errorf(\"%w: %w\", ErrNotLeader, err)\n}",
	},
	{
		name: "lead-with-a-slow-disk", file: "coordinator/consensus/upkeep.go", suite: inConsensus.only("SlowDisk"),
		is: "if own <= slowWrite {", becomes: "if own <= time.Hour {",
	},
	{
		name: "hand-over-to-a-slow-disk", file: "coordinator/consensus/upkeep.go", suite: inConsensus.only("SlowDisk|AsSlow"),
		is: "told && report.Write < own/2 && ", becomes: "told && report.Write >= 0 && ",
	},
	{
		name: "stamp-with-a-wrong-clock", file: "coordinator/consensus/propose.go", suite: inConsensus.only("YearsAhead"),
		is: "if err := c.checkClock(); err != nil {", becomes: "if err := c.checkClock(); err != nil && data == nil {",
	},
	{
		name: "one-other-tells-the-time", file: "coordinator/consensus/clocks.go", suite: inConsensus.only("ClockIsWrong|YearsAhead"),
		is: "if 2*len(behind) <= heard {", becomes: "if len(behind) == 0 {",
	},
	{
		name: "any-certificate-on-raft-port", file: "coordinator/consensus/listener.go", suite: inConsensus.only("OnlyMembersSpeak"),
		is: "case identity.Role != pki.RolePeer:", becomes: "case identity.Role != pki.RolePeer && identity.ID == \"\":",
	},
	{
		name: "skip-cluster-id-of-members", file: "coordinator/consensus/listener.go", suite: inConsensus.only("AnotherClusterIsForeign"),
		is: "case identity.ClusterID != l.clusterID:", becomes: "case identity.ClusterID == \"\":",
	},
	{
		name: "witness-not-written", file: "coordinator/consensus/checked.go", suite: inConsensus.only("TheStoreKnows"),
		is:      "c.store(append([]*raft.Log{witness(first, last, false)}, logs...)); err != nil {",
		becomes: "c.store(logs); err != nil {",
	},
	{
		name: "skip-sum-of-entries", file: "coordinator/consensus/checked.go", suite: inConsensus.only("ADamagedStore|OpenTells"),
		is: "if !bytes.Equal(sum, sumOf(log)) {", becomes: "if len(sum) != len(sumOf(log)) {",
	},
	{
		name: "lead-without-barrier", file: "coordinator/daemon/lead.go", suite: inDaemon,
		is: "err := d.consensus.Barrier(ctx)\n", becomes: "err := ctx.Err()\n",
	},

	// Operations: evidence and verdicts.
	{
		name: "ambiguous-start-as-failed", file: "coordinator/operation/start.go", suite: inOperation, quick: true,
		is: "case OutcomeAmbiguous:\n\t\tt.enter(Judging)", becomes: "case OutcomeAmbiguous:\n\t\tt.startFailed(answer.Code, answer.Error)",
	},
	{
		name: "answer-of-another-step", file: "coordinator/operation/step.go", suite: inOperation.only("AnotherStep"),
		is: "op.Result == Parked || answer.Step != op.Step {", becomes: "op.Result == Parked {",
	},
	{
		name: "hand-over-before-source-is-gone", file: "coordinator/operation/migrate.go", suite: inOperation.only("StillShows"),
		is: "case answer.Outcome == OutcomeDone && gone:", becomes: "case answer.Outcome == OutcomeDone && (gone || answer.Seen.State != \"\"):",
	},
	{
		name: "back-before-the-source-is-done", file: "coordinator/operation/discard.go", suite: inOperation.only("ClearedUp"),
		is: "return !seen.JobActive // otherwise", becomes: "return true // otherwise",
	},
	{
		name: "judge-on-one-look", file: "coordinator/operation/step.go", suite: inOperation.only("BothLooks"),
		is: "if !asked || look.State == \"\"", becomes: "if asked && look.State == \"\"",
	},
	{
		name: "resume-source-blindly", file: "coordinator/operation/verdict.go", suite: inOperation.only("BothLooks"),
		is:      "op.Leftover, op.Revert = op.Target, true\n\t\tt.enter(Discarding)",
		becomes: "op.Leftover, op.Revert = op.Target, true\n\t\tt.enter(Reverting)",
	},
	{
		name: "paused-target-as-committed", file: "coordinator/operation/verdict.go", suite: inOperation, quick: true,
		is: "if absent || paused {\n\t\t\treturn RolledBack", becomes: "if absent || paused {\n\t\t\treturn Committed",
	},
	{
		name: "trust-a-foreign-copy", file: "coordinator/operation/verdict.go", suite: inOperation,
		is:      "target.State != model.DomainUnknown && target.Epoch != epoch {",
		becomes: "target.State != model.DomainUnknown && target.Epoch > epoch {",
	},
	{
		name: "forget-what-was-left", file: "coordinator/operation/discard.go", suite: inOperation, quick: true,
		is:      "t.VM.Discards = append(slices.Clone(t.VM.Discards), model.Discard{Node: op.Leftover, Epoch: op.leftoverEpoch()})",
		becomes: "_ = slices.Clone(t.VM.Discards)",
	},
	{
		name: "discard-what-somebody-let-run", file: "coordinator/evidence/discards.go", suite: inControl.only("LetRun"),
		is:      "domain.State == model.DomainRunning:\n\t\t\tover = append(over, left)",
		becomes: "domain.State == model.DomainRunning:\n\t\t\tdue = append(due, left)",
	},
	{
		name: "restart-beside-what-was-left", file: "coordinator/control/recovery/restarts.go", suite: inControl.only("TheCopyThatWasLeft"),
		is:      "if due, _ := evidence.Discardable(r.Moment(snapshot), vm); len(due) > 0 {",
		becomes: "if due, _ := evidence.Discardable(r.Moment(snapshot), vm); len(due) > len(vm.Discards) {",
	},
	{
		name: "hear-a-fenced-node", file: "coordinator/operation/driver.go", suite: inOperation,
		is: "case d.isFenced(answer.Node):", becomes: "case d.isFenced(answer.Node) && answer.Step == 0:",
	},
	{
		name: "lose-reservation", file: "coordinator/operation/operation.go", suite: inOperation,
		is: ".reserves || o.Phase == Placing {", becomes: ".reserves || o.Phase != Dispatched {",
	},
	{
		name: "forget-how-it-ended", file: "agent/jobs/ended.go", suite: inJobs,
		is: "return guest.told == toldEnded, true", becomes: "return false, true",
	},
	{
		name: "forget-the-boot", file: "coordinator/operation/verdict.go", suite: inOperation,
		is: "case gone && paused && source.Anew:", becomes: "case gone && paused && source.Anew && source.JobActive:",
	},

	// Soft facts.
	{
		name: "accept-old-sequence", file: "coordinator/inventory/session.go", suite: inInventory, quick: true,
		is: "n.session != x || message.GetSequence() <= n.sequence {", becomes: "n.session != x {",
	},
	{
		name: "failed-listing-as-empty", file: "coordinator/inventory/session.go", suite: inInventory,
		is: "\tif !n.domainsKnown {\n", becomes: "\tif !n.domainsKnown && len(n.domains) == 0 {\n",
	},
	{
		name: "old-session-goes-on", file: "coordinator/inventory/session.go", suite: inInventory,
		is: "if n == nil || n.session != x || message", becomes: "if n == nil || message",
	},
	{
		name: "silence-as-absent", file: "coordinator/agents/convert.go", suite: inAgents,
		is: "return operation.Observation{State: model.DomainUnknown}", becomes: "return operation.Observation{State: model.DomainAbsent}",
	},
	{
		name: "order-of-an-old-term", file: "coordinator/agents/server.go", suite: inAgents,
		is: "if x == nil || x.term != term {", becomes: "if x == nil {",
	},
	{
		name: "skip-cluster-id-of-agents", file: "coordinator/agents/server.go", suite: inAgents,
		is: "caller.Role != pki.RoleAgent || caller.ClusterID != s.ClusterID {", becomes: "caller.Role != pki.RoleAgent {",
	},

	// Ledgers.
	{
		name: "in-flight-memory-left-out", file: "coordinator/view/accounting.go", suite: inView, quick: true,
		is: "claimed = append(claimed, chargeOfReservation(*held, v.roster.vms.ByID(held.VM)))", becomes: "_ = held",
	},
	{
		name: "memory-counted-twice", file: "coordinator/view/accounting.go", suite: inView,
		is: "one.Memory = max(one.Memory, other.Memory)", becomes: "one.Memory = add(one.Memory, other.Memory)",
	},
	{
		name: "young-memory-left-out", file: "coordinator/view/accounting.go", suite: inView,
		is:      "func (a *Allocation) physicalCharge() units.Bytes {\n\tif a.Young || a.InFlight {",
		becomes: "func (a *Allocation) physicalCharge() units.Bytes {\n\tif a.InFlight {",
	},

	// The leader's loops.
	{
		name: "quarantine-not-honoured", file: "coordinator/control/lead/refusal.go", suite: inControl,
		is:      "reason := snapshot.Meta(state.MetaQuarantine)\n\tif reason == \"\" {",
		becomes: "reason := snapshot.Meta(state.MetaQuarantine)\n\tif reason != \"?\" {",
	},
	// Where a VM may be, and what proves that it runs nowhere.
	{
		name: "a-late-watch-counts-as-whole", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "case ended && ending.Whole:", becomes: "case ended && !ending.At.IsZero():",
	},
	{
		name: "off-whatever-was-seen-before", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "case holder.worth == off && !holder.seenWithout(vm):", becomes: "case holder.worth == off:",
	},
	{
		name: "a-moving-guest-is-where-it-was", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "|| domain.JobActive ||", becomes: "||",
	},
	{
		name: "booted-whatever-was-seen-before", file: "coordinator/evidence/account.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "(facts.Before.Boot != was || !leaving(facts.Before.Domain(vm.ID)))", becomes: "true",
	},
	{
		name: "an-old-listing-is-enough", file: "coordinator/evidence/word.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "!out.after.IsZero() && !listed.After(out.after):", becomes: "!out.after.IsZero() && listed.IsZero():",
	},
	{
		name: "silence-is-not-in-the-way", file: "coordinator/evidence/word.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "case out.asks:\n", becomes: "case out.asks && out.watched:\n",
	},
	{
		name: "a-silent-copy-is-forgotten", file: "coordinator/evidence/word.go", suite: inEvidence.only("WhereAVMMayBe"),
		is:      "case shows && (one.worth == lying || !s.gone(vm, one) || since(domain.Since, vm)):",
		becomes: "case shows && one.worth == lying:",
	},
	{
		name: "one-look-is-enough", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("WhereAVMMayBe"),
		is: "if out.asks && out.after.IsZero() {", becomes: "if out.asks && out.after.IsZero() && out.watched {",
	},
	{
		name: "released-while-another-may-have-it", file: "coordinator/evidence/elsewhere.go", suite: inControl.only("HolderIsOff"),
		is: "if word.Standing != LeftThere {", becomes: "if word.Standing == ShowsIt {",
	},
	{
		name: "missing-is-not-written-down", file: "coordinator/control/outofband/follow.go", suite: inControl.only("HolderIsOff"),
		is:      "lost := finding.Missing && vm.Whereabouts.Missing.IsZero() &&",
		becomes: "lost := finding.Missing && vm.Whereabouts.Missing.After(vm.StartedAt) &&",
	},
	{
		name: "nobody-fences-for-the-missing", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("MissingVMMayBeOn"),
		is: "if word.Standing == evidence.Silent && word.Node != vm.Holder {", becomes: "if word.Standing == evidence.IsOff {",
	},
	{
		name: "a-start-by-hand-asks-nobody", file: "coordinator/control/lifecycle/startable.go", suite: inControl.only("ByHandAsks"),
		is: "if missing, next := answer.Missing(); !answer.May &&", becomes: "if missing, next := answer.Missing(); answer.Runs &&",
	},
	{
		name: "force-beside-a-copy", file: "coordinator/evidence/answer.go", suite: inControl.only("NobodyForces"),
		is: "if word.Domain != nil {", becomes: "if word.Domain != nil && word.At.IsZero() {",
	},
	{
		name: "started-unrefused", file: "coordinator/control/lifecycle/startable.go", suite: inControl.only("HolderRefuses"),
		is:      "case !last.refuses:\n\t\treturn &lead.Error{\n\t\t\tCode: lead.Busy,",
		becomes: "case false:\n\t\treturn &lead.Error{\n\t\t\tCode: lead.Busy,",
	},
	{
		name: "stopped-without-having-ended", file: "coordinator/operation/stop.go", suite: inOperation.only("FindsNothing"),
		is: "if !ended && (!booted || !was.Missing.IsZero()) {", becomes: "if ended && (!booted || !was.Missing.IsZero()) {",
	},
	{
		name: "lost-without-a-trace", file: "coordinator/operation/verdict.go", suite: inOperation.only("NeitherNodeHas"),
		is: "source.Anew); !ended {", becomes: "source.Anew); !ended && handed {",
	},
	{
		name: "an-end-of-another-stay", file: "coordinator/operation/verdict.go", suite: inOperation.only("NeitherNodeHas"),
		is: "source.Anew); !ended {", becomes: "source.Anew || target.Ended); !ended {",
	},
	{
		name: "a-pause-is-no-gap", file: "agent/jobs/ended.go", suite: inJobs.only("HowLongAGuestWasWatched"),
		is: "whole: was.told == toldStands && was.whole})", becomes: "whole: was.told == toldStands})",
	},
	{
		name: "a-listed-guest-was-watched-for-ever", file: "agent/jobs/ended.go", suite: inJobs.only("HowLongAGuestWasWatched"),
		is:      "ending{told: toldRuns, at: now, ranSince: now})\n\t\tcase",
		becomes: "ending{told: toldRuns, at: now, ranSince: now, whole: true})\n\t\tcase",
	},
	{
		name: "a-change-keeps-an-old-ending", file: "coordinator/inventory/endings.go", suite: inInventory.only("HowGuestsEnded"),
		is: "delete(next, wire.GetUuid())", becomes: "_ = wire",
	},
	{
		name: "one-dead-node-stops-restarts", file: "coordinator/evidence/account.go", suite: inFaults.only("NeverComesBack"),
		is: "case ended && ending.Whole:", becomes: "case ended && ending.Whole && ending.At.IsZero():",
	},
	{
		name: "asks-a-holder-that-is-off", file: "coordinator/control/outofband/follow.go", suite: inControl.only("FromAHolderThatIsOff"),
		is: "if finding.HolderOff || w.refused(ctx, &vm) {", becomes: "if w.refused(ctx, &vm) {",
	},
	{
		name: "deletes-what-a-silent-node-showed", file: "coordinator/control/lifecycle/delete.go", suite: inControl.only("ASilentNodeShowed"),
		is: "case len(names) == 0 && !answer.May:", becomes: "case len(names) == 0 && !answer.May && answer.Asks:",
	},
	{
		name: "an-unseen-end-is-a-hand-over", file: "coordinator/operation/verdict.go", suite: inFaults.only("TestSeeds").with("SEEDS=300"),
		is: "case gone && paused && source.Unseen:", becomes: "case gone && paused && source.Unseen && source.Ended:",
	},
	{
		name: "the-log-of-a-guest-is-not-read", file: "agent/jobs/look.go", suite: inFaults.only("TestSeeds").with("SEEDS=300"),
		is: "&& !j.Hypervisor.Left(", becomes: "|| false && !j.Hypervisor.Left(",
	},
	{
		name: "an-earlier-log-counts", file: "agent/hypervisor/guestlog/guestlog.go", suite: suite{pkg: "./agent/hypervisor/guestlog"},
		is: `uuid, left = "", false`, becomes: `uuid = ""`,
	},
	{
		name: "moved-by-hand-is-never-decided", file: "coordinator/operation/verdict.go", suite: inOperation.only("SomebodyHasMoved"),
		is: "if !handed && movedByHand(op, source, target) {", becomes: "if false && movedByHand(op, source, target) {",
	},
	{
		name: "follow-without-proof", file: "coordinator/evidence/follow.go", suite: inControl,
		is: "holder.worth == off, holder.worth == heard && s.Lacks(*vm)", becomes: "holder.worth == off, holder.worth == heard",
	},
	{
		name: "balance-while-many-are-silent", file: "coordinator/balance/pass.go", suite: inBalance,
		is: "if float64(silent) > maxAbsent*float64(wanted) {", becomes: "if silent > wanted {",
	},
	{
		name: "restart-in-the-room-of-a-higher-priority", file: "coordinator/evidence/restart.go", suite: inEvidence.only("NoRestart"),
		is: "if turn(&vm) < last || !lately(&vm) {", becomes: "if !lately(&vm) {",
	},
	{
		name: "restart-on-host-after-host", file: "coordinator/evidence/restart.go", suite: inControl.only("TakesItsHostsDown"),
		is: "if vm.LostTooMany() {", becomes: "if vm.LostTooMany() && vm.LastNode == \"?\" {",
	},
	{
		name: "boots-lose-no-vms", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("BootsAnewIsLost"),
		is: "gone := f.lostByBoot(p, node, &after)", becomes: "gone := f.lostByBoot(p, node, node)",
	},
	{
		name: "start-on-host-after-host", file: "coordinator/operation/start.go", suite: inOperation.only("TwoHostsAtMost"),
		is: "case t.VM.LostTooMany():", becomes: "case false && t.VM.LostTooMany():",
	},
	{
		name: "fence-while-many-are-silent", file: "coordinator/evidence/silence.go", suite: inEvidence.only("MostNodesSilent|FencingNeverActs"),
		is: "case mass.all != \"\":", becomes: "case mass.all == \"?\":",
	},
	{
		name: "start-before-those-it-needs", file: "coordinator/control/recovery/restarts.go", suite: inControl.only("InItsOrder"),
		is: "ready, behind := restarter", becomes: "_, behind := restarter",
	},
	{
		name: "wait-for-ever-for-those-before", file: "coordinator/evidence/behind.go", suite: inEvidence.only("NotWaitForEver"),
		is: "if one, waits := since[vm.ID]; waits {", becomes: "if one, waits := since[vm.ID]; !waits {",
	},
	{
		name: "start-again-what-never-should", file: "coordinator/evidence/again.go", suite: inEvidence.only("WhatRan"),
		is: "case wanted == model.RestartNever:", becomes: "case wanted == model.RestartNever && !vm.HA:",
	},
	{
		name: "start-again-what-ended-by-itself", file: "coordinator/evidence/again.go", suite: inEvidence.only("WhatRan"),
		is: "vm.Condition.Is(model.HostBooted, ", becomes: "vm.Condition.Is(model.OutOfBand, model.HostBooted, ",
	},
	{
		name: "late-storage-counts-as-a-failure", file: "coordinator/operation/start.go", suite: inOperation.only("WaitsForItsStorage"),
		is: "t.VM.Restarts = max(t.VM.Restarts-1, 0)", becomes: "t.VM.Restarts = max(t.VM.Restarts, 0)",
	},
	{
		name: "fence-a-dark-rack", file: "coordinator/evidence/silence.go", suite: inEvidence.only("DarkRack"),
		is: "case mass.rack != \"\" && s.Domain == mass.dark:", becomes: "case mass.rack == \"?\":",
	},
	{
		name: "two-dark-racks-are-one", file: "coordinator/evidence/mass.go", suite: inEvidence.only("DarkRack"),
		is: "if many != 1 {", becomes: "if many == 0 {",
	},
	{
		name: "what-is-off-counts-for-ever", file: "coordinator/evidence/silence.go", suite: inEvidence.only("CountsForAWhile"),
		is: "&& s.OffFor < FencedCounts", becomes: "&& s.OffFor >= 0",
	},
	{
		name: "fence-without-grace", file: "coordinator/evidence/silence.go", suite: inEvidence.only("HoldsAFencingBack|FencingNeverActs"),
		is: "case leading < FenceGrace:", becomes: "case leading < 0:",
	},
	{
		name: "proof-outlives-its-boot", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("BootsAnewWhileItIsFenced"),
		is: "case now.Boot != fencing.Boot || evidence.BootedAnew(p.Facts(node.ID), &now, fencing.Boot):", becomes: "case fencing.Boot == \"?\":",
	},
	{
		name: "believe-a-device-at-once", file: "coordinator/control/fencing/witness.go", suite: inControl.only("StrikesAnotherMachine"),
		is: "return len(silent) > 0, \"\"", becomes: "return false, \"\"",
	},
	{
		name: "ask-a-wrong-device-again", file: "coordinator/control/fencing/witness.go", suite: inControl.only("StrikesAnotherMachine"),
		is: "return p.NodeName(fencing.Struck)", becomes: "return \"\"",
	},
	{
		name: "a-boot-clears-a-struck-node", file: "coordinator/control/fencing/witness.go", suite: inControl.only("StrikesAnotherMachine"),
		is: "if facts.Liveness.Answers() && facts.Boot == fencing.StruckBoot &&", becomes: "if facts.Liveness.Answers() &&",
	},
	{
		name: "two-nodes-with-one-fence-target", file: "coordinator/model/fence.go", suite: inAPI.only("FenceDevices"),
		is: "maps.Equal(own, other.target())", becomes: "d.Equal(other)",
	},
	{
		name: "count-those-that-somebody-has-seen-off", file: "coordinator/evidence/silence.go", suite: inEvidence,
		is: "s.Node.Fencing.Method != model.FenceManual && ", becomes: "",
	},
	{
		name: "count-on-a-node-that-is-back", file: "coordinator/evidence/proof.go", suite: inControl.only("AProofEndsWithTheNextBoot"),
		is: "== \"\" && !BootedAnew(m.Facts(node.ID), node, node.Fencing.Boot)", becomes: "== \"\"",
	},
	{
		name: "restart-what-has-a-holder", file: "coordinator/evidence/restart.go", suite: inControl.only("TheLargestVMIsRestartedFirst"),
		is: "|| vm.Holder != \"\" || vm.Operation", becomes: "|| vm.Operation",
	},
	{
		name: "any-exit-code-as-proof", file: "coordinator/fence/run.go", suite: suite{pkg: "./coordinator/fence", run: "WhatIsAProof"},
		is: "case code == exitOff:", becomes: "case code >= 0:",
	},

	// Headroom.
	{
		name: "headroom-ignored", file: "coordinator/placement/engine.go", suite: inPlacement.only("Golden|Leaves|Keeps"), quick: true,
		is: "if columns.Headroom != nil && !request.Restart {", becomes: "if columns.Headroom != nil && request.Restart {",
	},
	{
		name: "headroom-without-what-is-placed", file: "coordinator/placement/rule/headroom.go", suite: inPlacement.only("Golden|Leaves|Keeps"),
		is: "h.left[on] -= h.placed.Memory", becomes: "h.left[on] -= 0",
	},
	{
		name: "headroom-on-the-failed-node", file: "coordinator/placement/rule/headroom.go", suite: inPlacement.only("Golden|Leaves|Keeps"),
		is: "&& !slices.Contains(failed, at) && h.rules", becomes: "&& len(failed) > 0 && h.rules",
	},
}
