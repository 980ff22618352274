package main

// liveMutants break what people do to guests that run.
var liveMutants = []mutant{
	{
		name: "a-cancelled-operation-failed", file: "coordinator/operation/operation.go", suite: inControl.only("ACancelledMigration"),
		is: "return o.Cancel && o.Result == Failed", becomes: "return o.Cancel && o.Result == Parked",
	},
	{
		name: "a-guest-is-resumed-beside-another", file: "coordinator/api/guests/act.go", suite: inAPI.only("NotResumedBesideAnother"),
		is: "case vm.Holder != \"\" && len(others) > 0:", becomes: "case vm.Holder != \"\" && len(others) > 99:",
	},
	{
		name: "no-room-counts-as-a-pause", file: "agent/jobs/pause.go", suite: inJobs.only("PauseAndUnpause"),
		is: "if seen.domain.Reason == hypervisor.ReasonIOError {", becomes: "if seen.domain.Reason == \"\" {",
	},
	{
		name: "a-pause-in-doubt-is-over", file: "coordinator/operation/amend.go", suite: inOperation.only("PauseAndAResume"),
		is: "	case OutcomeAmbiguous:\n		return false\n", becomes: "",
	},
	{
		name: "a-pause-outlives-its-guest", file: "coordinator/operation/start.go", suite: inOperation.only("APausedVMRun"),
		is: "	t.VM.Paused = model.Stand{}\n", becomes: "",
	},
	{
		name: "a-pause-by-order-is-an-alarm", file: "coordinator/evidence/outofband.go", suite: inEvidence.only("PauseByOrder"),
		is: "domain.State == model.DomainPaused && !vm.StandsByOrder(domain):", becomes: "domain.State == model.DomainPaused:",
	},
	{
		name: "a-disk-of-a-stopped-vm-is-attached", file: "coordinator/control/drifts/unused.go", suite: inControl.only("DiskOfAnotherVM"),
		is: "if other.ID != vm.ID && near && ", becomes: "if other.ID != vm.ID && other.Holder != \"\" && near && ",
	},
	{
		name: "a-disk-in-use-is-attached", file: "coordinator/control/drifts/unused.go", suite: inControl.only("DiskOfAnotherVM"),
		is: "if len(vm.Disks)+len(vm.Spec.Disks)+len(vm.Drifted()) == 0 && ", becomes: "if len(vm.Disks)+len(vm.Spec.Disks) == 0 && ",
	},
	{
		name: "a-frozen-guest-moves", file: "agent/jobs/migrate.go", suite: inJobs.only("FrozenGuestDoesNotMove"),
		is:      "if err == nil && epoch == j.command.GetEpoch() && !seen.domain.JobActive {",
		becomes: "if err == nil && epoch > j.command.GetEpoch() {",
	},
	{
		name: "somebody-elses-freeze-is-thawed", file: "agent/jobs/snapshot.go", suite: inJobs.only("SomebodyElseHasFrozen"),
		is: "if left != epoch && j.frozenByOthers() {", becomes: "if left != epoch && j.frozenByOthers() && j.takenUp {",
	},
	{
		name: "a-frozen-guest-is-asked-to-stop", file: "coordinator/control/drifts/frozen.go", suite: inControl.only("SomebodyHasFrozen"),
		is: "if err != nil || !done.Frozen {", becomes: "if err != nil || !done.Frozen || otherwise != \"\" {",
	},
	{
		name: "a-drain-tells-of-no-frozen-guest", file: "coordinator/control/drifts/frozen.go", suite: inControl.only("SomebodyHasFrozen"),
		is: "if vm, known := snapshot.VM(id); known && d.Unfrozen", becomes: "if vm, known := snapshot.VM(id); !known && d.Unfrozen",
	},
	{
		name: "a-document-takes-anybodys-disk", file: "coordinator/control/drifts/unused.go", suite: inControl.only("ADocumentWithADisk"),
		is: "	return Unused(snapshot, survey, after, edits)\n", becomes: "	_ = edits\n	return nil\n",
	},
	{
		name: "a-document-leaves-a-snapshot", file: "coordinator/api/guests/document.go", suite: inAPI.only("ADocumentTakes"),
		is: "if err := snapshotsKept(&vm, &after); err != nil {", becomes: "if err := snapshotsKept(&vm, &vm); err != nil {",
	},
	{
		name: "a-disk-leaves-with-a-snapshot", file: "coordinator/estate/transition.go", suite: inAPI.only("StaysLinked"),
		is: "	t.vms()\n	t.snapshots()\n", becomes: "	t.vms()\n",
	},
	{
		name: "what-starts-nowhere-is-found-once", file: "coordinator/control/recovery/readiness.go", suite: inControl.only("StartedNowhere"),
		is: "		r.found(found)\n", becomes: "		if len(found) > 0 {\n			r.found(found)\n		}\n",
	},
	{
		name: "a-failed-new-disk-leaves-its-file", file: "agent/jobs/amend.go", suite: inJobs.only("ANewDisk"),
		is: "	err := volumes.Remove(j.ctx, j.Hypervisor, made)\n", becomes: "	var err error\n",
	},
	{
		name: "a-new-disk-is-used-before-it-is-there", file: "coordinator/control/volumes/newdisk.go", suite: inControl.only("NewDisk"),
		is: "Capacity: order.Capacity, Doomed: true}", becomes: "Capacity: order.Capacity}",
	},
	{
		name: "a-new-disk-takes-room-that-is-not-there", file: "coordinator/control/volumes/newdisk.go", suite: inControl.only("NewDisk"),
		is: "if err := v.roomOn(snapshot, pool, vm.Holder, size); err != nil {", becomes: "if size < 0 {\n		var err error",
	},
	{
		name: "a-new-disk-in-doubt-has-no-record", file: "coordinator/operation/newdisk.go", suite: inOperation.only("PhaseTable"),
		is: "			doomed(t, made)\n		}\n		return true", becomes: "			unmade(t)\n		}\n		return true",
	},
	{
		name: "an-attached-disk-is-there-twice", file: "coordinator/estate/resolve.go", suite: inControl.only("NewDisk"),
		is: "if disk.Volume != \"\" && attachedTo(&vm, disk.Volume) {", becomes: "if disk.Volume == \"\" && attachedTo(&vm, disk.Volume) {",
	},
	{
		name: "a-detached-new-disk-comes-back", file: "coordinator/operation/newdisk.go", suite: inControl.only("NewDisk"),
		is: "					unlink(t, disksOf(&t.VM, has.Source)...)\n", becomes: "					unlink(t)\n",
	},
	{
		name: "an-empty-disk-is-booted-from", file: "coordinator/control/volumes/newdisk.go", suite: inControl.only("NewDisk"),
		is: "case len(vm.Disks) == 1 && len(vm.Spec.Disks) > 0", becomes: "case len(vm.Disks) == 0 && len(vm.Spec.Disks) > 0",
	},
	{
		name: "a-device-is-replaced-by-another", file: "agent/jobs/amend.go", suite: inJobs.only("TestAmend"),
		is: "case !live.Media || !wanted.Media:", becomes: "case !live.Media && live.Key == \"\":",
	},
	{
		name: "a-change-with-berth-is-nobodys", file: "coordinator/drift/drift.go", suite: suite{pkg: "./coordinator/drift"},
		is: "edits[i].By, edits[i].At = old.By, old.At", becomes: "_ = old",
	},
	{
		name: "an-old-listing-takes-a-disk-away", file: "coordinator/drift/look.go", suite: inControl.only("DiskIsAttachedNow"),
		is: "found.VM.Drift != vm.Drift || amended(&vm) {", becomes: "found.VM.Drift != vm.Drift {",
	},
	{
		name: "what-a-guest-keeps-is-promised-again", file: "coordinator/model/size.go", suite: inControl.only("ASizeIsChangedNow"),
		is: "	return min(counted, domain.Memory)\n", becomes: "	return 0 * counted\n",
	},
	{
		name: "a-balloon-is-believed", file: "coordinator/model/size.go", suite: inModel.only("BalloonThatIsNotKept"),
		is: "counted = *domain.Resident", becomes: "counted += 0",
	},
	{
		name: "room-to-grow-counts-at-once", file: "coordinator/operation/start.go", suite: inControl.only("ASizeIsChangedNow"),
		is: "order.Spec.MaxMemory > order.Spec.Memory", becomes: "order.Spec.MaxMemory < 0",
	},
	{
		name: "a-guest-grows-without-room", file: "coordinator/control/lifecycle/resize.go", suite: inControl.only("GrowsOnlyWhere"),
		is: "return roomToGrow(l, snapshot, vm, after, request.Caller)", becomes: "_ = after",
	},
	{
		name: "the-smaller-size-is-held-meanwhile", file: "coordinator/control/lifecycle/resize.go", suite: inControl.only("GrowsOnlyWhere"),
		is: "op.Memory, op.VCPUs = max(now.Memory, after.Memory),", becomes: "op.Memory, op.VCPUs = min(now.Memory, after.Memory),",
	},
	{
		name: "a-guest-is-resized-by-halves", file: "agent/hypervisor/hypervisor.go", suite: inJobs.only("TestResize"),
		is: "if vcpus > mostVCPUs {", becomes: "if vcpus > mostVCPUs && memoryBytes == 0 {",
	},
	{
		name: "a-vm-starts-half-reverted", file: "coordinator/control/lifecycle/startable.go", suite: inControl.only("GoesOnWithARevert"),
		is: `	if vm.Reverting != "" {`, becomes: `	if vm.Reverting != "" && !exists {`,
	},
	{
		name: "a-failed-revert-is-forgotten", file: "coordinator/operation/snapshot.go", suite: inControl.only("GoesOnWithARevert"),
		is: "	t.VM.Reverting = t.Operation.Snapshot.Before\n", becomes: "	t.VM.Reverting = \"\"\n",
	},
	{
		name: "a-frozen-guest-is-left-so", file: "agent/jobs/jobs.go", suite: inJobs.only("TestAGuestIsAlwaysThawed"),
		is: "	j.thawLeft(frozen)\n", becomes: "	_ = frozen\n",
	},
	{
		name: "a-snapshot-of-another-file", file: "agent/jobs/snapshot.go", suite: inJobs.only("TestSnapshotsOfAGuestThatRuns"),
		is: "if here != files[at] {", becomes: "if here != files[at] && here == \"\" {",
	},
	{
		name: "a-paused-guest-is-moved", file: "coordinator/binding/binding.go", suite: inAPI.only("StandsStill"),
		is: "	if stands {\n", becomes: "	if stands && len(all) > 0 {\n",
	},
	{
		name: "what-was-just-attached-is-not-there", file: "coordinator/drift/amend.go", suite: suite{pkg: "./coordinator/drift"},
		is: "return edited(g.Live, slices", becomes: "return edited(g.Live, nil)\n\t\treturn edited(g.Live, slices",
	},
	{
		name: "what-is-changed-beside-berth-is-not-seen", file: "coordinator/drift/amend.go", suite: suite{pkg: "./coordinator/drift"},
		is: "return e.By == \"\" }))", becomes: "return e.By == \"nobody\" }))",
	},
}
