package main

// driftMutants break what is known of guests that people change beside Berth.
var driftMutants = []mutant{
	{
		name: "a-last-run-is-journalled-or-not", file: "agent/jobs/ran.go", suite: inJobs.only("OnceThereIsRoom"),
		is: "j.runs.Again(vm)", becomes: "_ = vm",
	},
	{
		name: "what-was-decided-is-asked-for-still", file: "coordinator/drift/drift.go", suite: suite{pkg: "./coordinator/drift"},
		is: "		return model.Condition{}\n", becomes: "		return vm.Condition\n",
	},
	{
		name: "what-a-migration-left-ended-here", file: "agent/jobs/stop.go", suite: inJobs.only("MigrationHasLeft"),
		is: "left := seen.in(hypervisor.PausedMigration)", becomes: "left := seen.in(hypervisor.Absent)",
	},
	{
		name: "an-old-note-of-a-log-counts", file: "agent/hypervisor/guestlog/guestlog.go",
		suite: suite{pkg: "./agent/hypervisor/guestlog"}.only("RootHasNoted"),
		is:    "	l.noted = nil\n", becomes: "	_ = l.noted\n",
	},
	{
		name: "hidden-files-are-nobodys", file: "agent/hypervisor/statusfiles/folder.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("MayNotBeRead"),
		is:    "case errors.Is(err, os.ErrPermission), ", becomes: "case ",
	},
	{
		name: "a-link-is-followed-by-root", file: "agent/hypervisor/statusfiles/folder.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("NothingButFiles"),
		is:    "unix.Lstat(path, &is)", becomes: "unix.Stat(path, &is)",
	},
	{
		name: "root-reads-for-anybody", file: "agent/hypervisor/statusfiles/service.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("AdmitsTheAgentAlone"),
		is:    "if !slices.Contains(s.Admits, account) {", becomes: "if !slices.Contains(s.Admits, account) && account != uint32(os.Geteuid()) {",
	},
	{
		name: "last-words-give-way-to-the-next-run", file: "agent/hypervisor/statusfiles/queue.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("AQueueKeeps"),
		is:    "before != nil && before.is != gone && one.is != gone", becomes: "before != nil",
	},
	{
		name: "a-slow-reader-takes-all-memory", file: "agent/hypervisor/statusfiles/queue.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("AQueueKeeps"),
		is:    "q.bytes > mostBytes || ", becomes: "",
	},
	{
		name: "an-older-file-is-kept-as-the-last", file: "agent/hypervisor/statusfiles/keeper.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("MayHaveChanged"),
		is:    "		err = k.drop(one.Name)\n", becomes: "		err = nil\n",
	},
	{
		name: "what-ends-right-now-is-not-kept", file: "agent/hypervisor/statusfiles/keeper.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("WaitsForAnAgent"),
		is:    "				if err := k.end(name, time.Now()); err != nil {", becomes: "				if err := k.drop(name); err != nil {",
	},
	{
		name: "who-does-not-read-has-heard", file: "agent/hypervisor/statusfiles/service.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("HasHeard"),
		is:    "unknown == nil && unread == 0", becomes: "unknown == nil && unread >= 0",
	},
	{
		name: "what-was-kept-is-kept-for-ever", file: "agent/hypervisor/statusfiles/service.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("HasHeard"),
		is:    "				s.kept.heard(now.Add(-after))\n", becomes: "				_ = now.Add(-after)\n",
	},
	{
		name: "who-has-left-has-ended-here", file: "agent/command/statusfiles.go",
		suite: suite{pkg: "./agent/command"}.only("LastWords"),
		is:    "is && !left(ctx, event.UUID, event.Name)", becomes: "is",
	},
	{
		name: "last-words-are-not-told", file: "agent/lastrun/lastrun.go", suite: suite{pkg: "./agent/lastrun"},
		is: "if event.Ran.Ended { // nobody", becomes: "if event.Ran.Found && event.Ran.Ended { // nobody",
	},
	{
		name: "what-is-found-at-once-is-lost", file: "agent/hypervisor/feed.go", suite: suite{pkg: "./agent/hypervisor"}.only("FirstSubscriber"),
		is: "f.early = append(f.early, event)", becomes: "_ = event",
	},
	{
		name: "libvirt-is-asked-again", file: "agent/hypervisor/libvirt/domains.go",
		suite: suite{pkg: "./agent/hypervisor/libvirt"}.only("NotReadAgain"),
		is:    "	if text == \"\" {\n		text, err = d.GetXMLDesc(0)", becomes: "	if text != \"-\" {\n		text, err = d.GetXMLDesc(0)",
	},
	{
		name: "what-libvirt-said-is-not-passed-on", file: "agent/hypervisor/statusfiles/watch.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("AskedOnce"),
		is:    "w.changed(answer.Name, answer.Text)", becomes: "w.changed(answer.Name, answer.Name[:0])",
	},
	{
		name: "the-service-is-not-asked", file: "agent/hypervisor/statusfiles/statusfiles.go",
		suite: suite{pkg: "./agent/hypervisor/statusfiles"}.only("LastWords"),
		is:    "	if socket == \"\" {", becomes: "	if socket != \"\" {",
	},
	{
		name: "an-unseen-end-is-forgotten", file: "coordinator/control/outofband/follow.go", suite: inControl.only("OnTopOfADisk"),
		is: "vm.Unwatched = vm.Epoch", becomes: "vm.Unwatched = 0",
	},
	{
		name: "a-restored-vm-is-started-blindly", file: "coordinator/control/lifecycle/start.go", suite: inControl.only("LooksForSnapshots"),
		is: " || vm.StartedAt.Before(lead.RestoredAt(s.snapshot)) {", becomes: " {",
	},
	{
		name: "a-lost-vm-is-started-blindly", file: "coordinator/operation/step.go", suite: suite{pkg: "./coordinator/operation"},
		is: `t.VM.Holder, t.VM.Whereabouts.Boot, t.VM.Unwatched = "", "", t.VM.Epoch`, becomes: `t.VM.Holder, t.VM.Whereabouts.Boot = "", ""`,
	},
	{
		name: "a-released-vm-is-started-blindly", file: "coordinator/evidence/elsewhere.go", suite: suite{pkg: "./coordinator/evidence"},
		is: "	if s.EndUnwatched(&vm) {\n		vm.Unwatched = vm.Epoch\n	}\n", becomes: "",
	},
	{
		name: "a-snapshot-is-not-asked-about", file: "coordinator/model/drift.go", suite: inControl.only("OnTopOfADisk|UnderASnapshot"),
		is: "return edit.Found && v.Drift != nil", becomes: "return edit.Rivals != \"\" && v.Drift != nil",
	},
	{
		name: "what-was-reverted-is-asked-again", file: "coordinator/operation/start.go", suite: inControl.only("OnTopOfADisk"),
		is: "(vm.Drift == nil || !vm.Drift.Reverted)", becomes: "(vm.Drift == nil || !vm.Drift.Accepted)",
	},
	{
		name: "an-empty-snapshot-is-in-the-way", file: "agent/hypervisor/overlay.go", suite: suite{pkg: "./agent/hypervisor"},
		is: "return v.Empty || ", becomes: "return ",
	},
	{
		name: "an-overlay-is-not-looked-for", file: "agent/jobs/start.go", suite: suite{pkg: "./agent/jobs"}.only("NoSnapshot|UnderASnapshot"),
		is: "if err == nil && j.command.GetStart().GetUnwatched()", becomes: "if err != nil && j.command.GetStart().GetUnwatched()",
	},
	{
		name: "what-was-told-ends-with-the-guest", file: "coordinator/drift/look.go", suite: inControl.only("EndedSinceIsKept"),
		is: "told.Devices != nil && told.Node == node", becomes: "told.Devices != nil && told.Node != node",
	},
	{
		name: "a-last-run-is-taken-in-twice", file: "coordinator/control/lifecycle/act.go", suite: inControl.only("DetachedAfterTheEnd"),
		is: "vm.Settled = vm.Epoch", becomes: "vm.Settled = 0",
	},
	{
		name: "a-start-hears-nothing-of-the-last-run", file: "coordinator/control/lifecycle/start.go", suite: inControl.only("NobodyHeardOf"),
		is: "vm = l.drifts.Ran(snapshot, vm)", becomes: "_ = l.drifts.Ran(snapshot, vm)",
	},
	{
		name: "what-was-accepted-is-not-what-runs", file: "coordinator/drift/drift.go", suite: suite{pkg: "./coordinator/drift"},
		is: "ran := ranSince(&vm)", becomes: "ran := vm.Ran",
	},
	{
		name: "a-stray-is-not-looked-at", file: "coordinator/drift/look.go", suite: inControl.only("BesideBerthIsWhat"),
		is: "	if len(found) != 1 {\n		return vm.Holder", becomes: "	if len(found) != 9 {\n		return vm.Holder",
	},
	{
		name: "a-change-on-a-deaf-node-is-forgotten", file: "coordinator/drift/look.go", suite: inControl.only("ListsNothing"),
		is: "nobody hears its node\n		found.Again = true", becomes: "nobody hears its node\n		found.Again = false",
	},
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
		name: "a-drift-is-forgotten-in-an-operation", file: "coordinator/drift/look.go", suite: inControl.only("LostToAnOperation"),
		is: "takes minutes\n		found.Again = true\n", becomes: "takes minutes\n		found.Again = false\n",
	},
	{
		name: "a-last-run-is-asked-of-one-node", file: "coordinator/drift/look.go", suite: inControl.only("NobodyKnewOf"),
		is: "slices.Backward(l.RanOn(vm.ID))", becomes: "slices.All([]string{vm.LastNode})",
	},
	{
		name: "a-reboot-hides-a-drift", file: "coordinator/drift/look.go", suite: inControl.only("DuringAReboot"),
		is: "op.Kind != operation.Reboot", becomes: "op.Kind != operation.Stop",
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
	{
		name: "a-smaller-disk-is-no-news", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("TheSizeThatADiskHas"),
		is: "		d.note(told.VM, found.Disks)\n", becomes: "",
	},
	{
		name: "a-disk-stays-smaller", file: "coordinator/control/drifts/drifts.go", suite: inControl.only("TheSizeThatADiskHas"),
		is: "		delete(d.shrunk, vm)\n", becomes: "",
	},
	{
		name: "nobody-tells-of-a-smaller-disk", file: "coordinator/api/guests/shrunk.go", suite: inAPI.only("ASmallerDisk"),
		is: "return !r.Shrunk() })", becomes: "return !r.Shrunk() })[:0]",
	},
}
