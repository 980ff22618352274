package main

// findingMutants undo, one by one, what closes the findings of a review that had no planted bug yet. The test that has to fail is the one
// that .github/SECURITY.md names for it.
var findingMutants = []mutant{
	// 1: whoever breaks out of a guest has what its QEMU reads.
	{
		name: "qemu-reads-libvirts-key", file: "agent/hostpki/hostpki.go",
		suite:   suite{pkg: "./agent/hostpki", run: "QEMUReadsItsOwn"},
		is:      "{clientControlKey, 0o600, false,",
		becomes: "{clientControlKey, 0o640, true,",
	},
	{
		name: "qemu-has-libvirts-key", file: "agent/hostpki/hostpki.go",
		suite:   suite{pkg: "./agent/hostpki", run: "QEMUReadsItsOwn"},
		is:      "{clientDataKey, 0o640, true, func(m *Material) []byte { return m.Data.Key }}",
		becomes: "{clientDataKey, 0o640, true, func(m *Material) []byte { return m.Control.Key }}",
	},
	{
		name: "one-authority-of-libvirt-and-qemu", file: "shared/pki/hypervisor.go",
		suite:   suite{pkg: "./shared/pki", run: "ControlAndData"},
		is:      "\t\tall[purpose] = authority\n",
		becomes: "\t\tall[Control], all[purpose] = authority, authority\n",
	},
	{
		name: "an-older-cluster-has-one-authority-of-both", file: "shared/pki/hypervisor.go",
		suite:   suite{pkg: "./shared/pki", run: "ControlAndData"},
		is:      `fmt.Sprintf("berth hypervisor authority %s %d", purpose, try)`,
		becomes: `fmt.Sprintf("berth hypervisor authority %d", try)`,
	},
	{
		name: "the-doctor-passes-over-a-shared-key", file: "agent/hostpki/look.go",
		suite:   suite{pkg: "./agent/hostpki", run: "WhatIsWrongIsNamed"},
		is:      "if err == nil && pki.SameKey(control, data) {",
		becomes: "if err != nil && pki.SameKey(control, data) {",
	},
	{
		name: "the-doctor-passes-over-a-shared-authority", file: "agent/hostpki/look.go",
		suite:   suite{pkg: "./agent/hostpki", run: "WhatIsWrongIsNamed"},
		is:      "if certificate.Equal(authority) || certificate.CheckSignatureFrom(authority) == nil {",
		becomes: "if certificate == authority {",
	},
	// 2: whoever has had the authority's key makes nobody, and who is removed or revoked is out at once.
	{
		name: "no-listener-asks-the-record", file: "coordinator/api/gate/keeper.go",
		suite:   suite{pkg: "./integration/adversary", run: "AuthoritysKeyMakesNobody"},
		is:      "\tstanding, name := k.judge(r.Context(), *who)\n",
		becomes: "\tstanding, name := identities.Recorded, who.Name\n",
	},
	{
		name: "the-port-for-raft-asks-no-record", file: "coordinator/consensus/membership.go",
		suite:   suite{pkg: "./integration/adversary", run: "AuthoritysKeyMakesNobody"},
		is:      "\tif !is.Counts() {\n\t\treturn fmt",
		becomes: "\tif !is.Counts() && is != identities.Unknown {\n\t\treturn fmt",
	},
	{
		name: "what-is-open-outlives-a-revocation", file: "coordinator/api/gate/keeper.go",
		suite:   suite{pkg: "./integration/adversary", run: "WhoIsRevokedIsOut"},
		is:      "\t\t\tv.end()\n",
		becomes: "",
	},
	{
		name: "a-removed-coordinator-is-not-revoked", file: "coordinator/api/members/member.go",
		suite:   suite{pkg: "./integration/adversary", run: "RemovedCoordinatorIsOut"},
		is:      "\t\tidentities.Remove(p.Snapshot, &command, pki.Identity{Role: pki.RolePeer,",
		becomes: "\t\tidentities.Remove(p.Snapshot, &state.Command{}, pki.Identity{Role: pki.RolePeer,",
	},
	// 3: one agent takes no coordinator's memory and streams.
	{
		name: "a-first-message-has-any-size", file: "coordinator/agents/server.go",
		suite:   suite{pkg: "./integration/adversary", run: "WhoHasNotSaidHello"},
		is:      "rpc.SmallFirst(mostFirst, mux)",
		becomes: "rpc.SmallFirst(1<<30, mux)",
	},
	{
		name: "a-first-message-is-unpacked", file: "shared/rpc/bounded.go",
		suite:   suite{pkg: "./integration/adversary", run: "WhoHasNotSaidHello"},
		is:      "case b.prefix[0]&compressed != 0:",
		becomes: "case b.prefix[0]&compressed != 0 && size == 0:",
	},
	{
		name: "messages-are-decoded-unestimated", file: "shared/rpc/bounded.go",
		suite:   suite{pkg: "./shared/rpc", run: "WhatWouldGrow"},
		is:      "if err := b.spend(data, m.ProtoReflect().Descriptor(), 0); err != nil {",
		becomes: "if err := b.spend(data, m.ProtoReflect().Descriptor(), 0); err != nil && len(data) == 0 {",
	},
	{
		name: "what-is-too-large-is-unpacked-to-its-end", file: "shared/rpc/bounded.go",
		suite:   suite{pkg: "./shared/rpc", run: "WhatIsUnpackedHasAnEnd"},
		is:      "if g.left -= n; g.left < 0 {",
		becomes: "if g.left -= n; g.left < -1<<40 {",
	},
	{
		name: "a-node-has-any-number-of-streams", file: "coordinator/agents/streams.go",
		suite:   suite{pkg: "./integration/adversary", run: "OneNodeHasFewStreams"},
		is:      "\tif s.open[of] >= most {\n",
		becomes: "\tif s.open[of] < 0 {\n",
	},
	{
		name: "a-node-opens-sessions-at-any-rate", file: "coordinator/agents/streams.go",
		suite:   suite{pkg: "./integration/adversary", run: "OpensSessionsAtARate"},
		is:      "\treturn pace.AllowN(now, 1)\n",
		becomes: "\treturn pace.AllowN(now, 0)\n",
	},
	// 4: one agent fills neither log nor backups.
	{
		name: "agents-write-texts-of-any-length", file: "coordinator/agents/text.go",
		suite:   suite{pkg: "./integration/adversary", run: "WhatAnAgentWrites"},
		is:      "plaintext.Line(value.String(), most)",
		becomes: "plaintext.Line(value.String(), most<<20)",
	},
	{
		name: "a-node-that-lies-has-no-budget", file: "coordinator/control/lead/budget.go",
		suite:   suite{pkg: "./coordinator/control/lead", run: "WrittenDownSlowly"},
		is:      "\tif own.AllowN(now, 1) {\n",
		becomes: "\tif own.AllowN(now, 1) || node != \"\" {\n",
	},
	{
		name: "what-a-guest-changes-has-no-budget", file: "coordinator/control/drifts/drifts.go",
		suite:   suite{pkg: "./coordinator/control", run: "ChangesAllTheTime"},
		is:      "\tif !d.Spend(after.Holder) {\n",
		becomes: "\tif !d.Spend(\"\") {\n",
	},
	{
		name: "lies-are-told-at-others-expense", file: "coordinator/control/outofband/copies.go",
		suite:   suite{pkg: "./coordinator/control", run: "LiesAboutOthersGuests"},
		is:      "w.note(ctx, elsewhere(&vm, copies), now,",
		becomes: `w.note(ctx, "", now,`,
	},
	// 5: a report has no root open an address.
	{
		name: "a-node-says-where-its-guests-are-sent", file: "coordinator/control/lifecycle/migrate.go",
		suite:   suite{pkg: "./coordinator/control", run: "AddressOfAMigration"},
		is:      "uri, believed := destination.URI(target, facts.MigrationURI, facts.CalledFrom)",
		becomes: "uri, believed := facts.MigrationURI, true",
	},
	{
		name: "a-node-passes-for-another-host", file: "shared/destination/destination.go",
		suite:   suite{pkg: "./coordinator/control", run: "AddressOfAMigration"},
		is:      "if err != nil || !same(name, host, from) {",
		becomes: "if err != nil {",
	},
	{
		name: "any-program-is-a-destination", file: "shared/destination/destination.go",
		suite:   suite{pkg: "./shared/destination", run: "OnlyLibvirtOfAnother"},
		is:      "if uri != build(host, port) {",
		becomes: `if uri == "" && build(host, port) != "" {`,
	},
	{
		name: "an-agent-sends-guests-anywhere", file: "agent/jobs/migrate.go",
		suite:   suite{pkg: "./agent/jobs", run: "ToWhatIsNoNode"},
		is:      "destination.Check(order.GetTargetUri(), order.GetTargetAddress()); err != nil {",
		becomes: "destination.Check(order.GetTargetUri(), order.GetTargetAddress()); err != nil && order == nil {",
	},
	{
		name: "a-node-is-certified-as-another", file: "coordinator/agents/hypervisor.go",
		suite:   suite{pkg: "./coordinator/agents", run: "CertifiedAsItself"},
		is:      "if host := destination.Host(name, uri, from); host != name {",
		becomes: `if host := strings.TrimSuffix(strings.TrimPrefix(uri, "qemu+tls://"), "/system"); host != name {`,
	},
	// 7: a fence device runs what root has put there.
	{
		name: "fence-arguments-name-programs", file: "coordinator/model/fence.go",
		suite:   suite{pkg: "./coordinator/model", run: "AFenceDeviceRuns"},
		is:      "\t\tcase runs(name):\n",
		becomes: "\t\tcase runs(name) && value == \"\":\n",
	},
	{
		name: "fence-arguments-name-any-file", file: "coordinator/model/fence.go",
		suite:   suite{pkg: "./coordinator/model", run: "AFenceDeviceRuns"},
		is:      "case isFile(name) && !fenceFile.MatchString(value):",
		becomes: `case isFile(name) && value == "":`,
	},
	{
		name: "fence-arguments-are-many-words", file: "coordinator/model/fence.go",
		suite:   suite{pkg: "./coordinator/model", run: "AnArgumentIsOneWord"},
		is:      `case isWord(name) && (strings.HasPrefix(value, "-") || strings.ContainsAny(value, " \t")):`,
		becomes: `case isWord(name) && value == "":`,
	},
	// 11: the history names one operator.
	{
		name: "two-operators-have-one-name", file: "coordinator/identities/record.go",
		suite:   suite{pkg: "./coordinator/identities", run: "TwoOperators"},
		is:      "taken && !known && other.ID != identity.ID {",
		becomes: "taken && !known && other.ID == identity.ID {",
	},
	{
		name: "events-name-no-identity", file: "coordinator/identities/record.go",
		suite:   suite{pkg: "./coordinator/identities", run: "TwoOperators"},
		is:      "\t\t\tevents[i].CallerID = identity.ID\n",
		becomes: "\t\t\t_ = identity\n",
	},
	// 12: a node speaks of so many domains, and of its own operations.
	{
		name: "a-list-of-any-length-is-believed", file: "coordinator/inventory/session.go",
		suite:   suite{pkg: "./integration/adversary", run: "ANodeHasNotAnyNumber"},
		is:      "n.tooMany = len(report.GetDomains()) > mostDomains",
		becomes: "n.tooMany = len(report.GetDomains()) > mostDomains<<8",
	},
	{
		name: "changes-make-any-number-of-domains", file: "coordinator/inventory/session.go",
		suite:   suite{pkg: "./integration/adversary", run: "ANodeHasNotAnyNumber"},
		is:      "return !there && len(known) >= mostDomains",
		becomes: "return !there && len(known) >= mostDomains<<8",
	},
	{
		name: "any-node-tells-of-an-operation", file: "coordinator/inventory/store.go",
		suite:   suite{pkg: "./integration/adversary", run: "NobodySpeaksForAnOperation"},
		is:      "return s.Concerns == nil || s.Concerns(node, operation)",
		becomes: `return s.Concerns == nil || s.Concerns(node, operation) || node != ""`,
	},
	// 10: a node that was revoked stays out.
	{
		name: "a-revoked-node-is-listened-to-once-deleted", file: "coordinator/identities/judge.go",
		suite:   suite{pkg: "./coordinator/identities", run: "ARemovedNodeIsGone"},
		is:      "identity.Kind == model.IdentityNode && identity.Revoked.Reason == removed {",
		becomes: "identity.Kind == model.IdentityNode {",
	},
	// 13 to 17.
	{
		name: "commands-have-domains-names-as-told", file: "coordinator/evidence/copy.go",
		suite:   suite{pkg: "./coordinator/evidence", run: "NoCommandHasAName"},
		is:      "return model.Argument(c.Domain.Name)",
		becomes: "return c.Domain.Name",
	},
	{
		name: "any-nodes-journal-is-broken", file: "coordinator/operation/step.go",
		suite:   suite{pkg: "./coordinator/operation", run: "BrokenJournalLeadsNowhere"},
		is:      "\tcase ordered && answer.Node != now.node(&t.Operation):\n",
		becomes: "\tcase ordered && answer.Node == \"\":\n",
	},
	{
		name: "an-epoch-at-the-end-of-the-numbers", file: "coordinator/inventory/facts.go",
		suite:   suite{pkg: "./integration/adversary", run: "AnEpochCannotBeDriven"},
		is:      "\tif told > mostEpoch {\n",
		becomes: "\tif told > mostEpoch<<1 {\n",
	},
	{
		name: "commands-have-names-as-agents-tell-them", file: "coordinator/model/binding.go",
		suite:   suite{pkg: "./coordinator/model", run: "WhatIsSaidOfBindings"},
		is:      `	if strange || name == "" ||`,
		becomes: `	if strange && name == "" || name == "" ||`,
	},
	{
		name: "a-stored-password-is-sent-elsewhere", file: "coordinator/model/fence.go",
		suite:   suite{pkg: "./coordinator/model", run: "ASecretGoesToNoOther"},
		is:      "\tif at := slices.IndexFunc(all, d.sameTarget); at >= 0 {\n",
		becomes: "\tif at := 0; len(all) > 0 {\n",
	},
	{
		name: "keys-of-fence-devices-are-shown", file: "coordinator/model/fence.go",
		suite:   suite{pkg: "./coordinator/model"},
		is:      `"apikey", "api_key",`,
		becomes: `"api_key",`,
	},
	{
		name: "a-token-is-on-the-command-line", file: "shared/config/secret.go",
		suite:   suite{pkg: "./shared/config", run: "ASecretNeedsNoPlace"},
		is:      "\tcase argument != \"-\":\n",
		becomes: "\tcase argument != \"\":\n",
	},
}
