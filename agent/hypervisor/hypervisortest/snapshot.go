package hypervisortest

import (
	"testing"

	"berth/agent/hypervisor"
)

// snapshots of two disks are taken, removed and restored, of a guest that runs and of files that nobody has open.
func snapshots(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	first := find(t, bench.Source, bench.Shared, bench.empty(t, bench.Source, bench.Shared))
	stranger := find(t, bench.Source, bench.Shared, bench.empty(t, bench.Source, bench.Shared))
	g := newGuest(t, bench).onFile(first.Path)
	running := hypervisor.DiskSnapshot{Tag: "tag1", Files: []string{first.Path}, UUID: g.id.UUID, Epoch: 1}
	off := hypervisor.DiskSnapshot{Tag: "tag1", Files: []string{first.Path}}
	do := func(what string, work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) {
		t.Helper()
		if err := hv.Snapshot(t.Context(), work, of); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused := func(what string, work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot, wanted error) {
		t.Helper()
		wantErr(t, what, hv.Snapshot(t.Context(), work, of), wanted)
	}
	refused("of a guest that is not there", hypervisor.SnapshotTake, running, hypervisor.ErrNotFound)
	g.start(t, hv)
	refused("of files that a guest has open", hypervisor.SnapshotTake, off, hypervisor.ErrInUse)
	if bench.Target.Hypervisor != nil {
		elsewhere := bench.Target.Hypervisor.Snapshot(t.Context(), hypervisor.SnapshotTake, off)
		wantErr(t, "of files that a guest on another host has open", elsewhere, hypervisor.ErrInUse)
	}
	other := running
	other.Epoch = 2
	refused("under another epoch", hypervisor.SnapshotTake, other, hypervisor.ErrOtherEpoch)
	other = running
	other.Files = []string{first.Path, stranger.Path}
	refused("of a disk that it does not have", hypervisor.SnapshotTake, other, hypervisor.ErrNoVolume)
	refused("restored under a guest", hypervisor.SnapshotRestore, running, hypervisor.ErrInvalidState)
	do("while it runs", hypervisor.SnapshotTake, running)
	do("once more", hypervisor.SnapshotTake, running)
	do("removed", hypervisor.SnapshotForget, running)
	do("removed once more", hypervisor.SnapshotForget, running)
	do("again", hypervisor.SnapshotTake, running)
	wantErr(t, "frozen without an agent", hv.Freeze(t.Context(), g.id.UUID, 1), hypervisor.ErrUnsupported)
	wantErr(t, "thawed without an agent", hv.Thaw(t.Context(), g.id.UUID, 1), hypervisor.ErrUnsupported)
	_, err := hv.IsFrozen(t.Context(), g.id.UUID)
	wantErr(t, "asked without an agent", err, hypervisor.ErrUnsupported)
	g.stop(t, hv)

	both := hypervisor.DiskSnapshot{Tag: "tag2", Files: []string{first.Path, stranger.Path}}
	refused("restored from what only one file has", hypervisor.SnapshotRestore,
		hypervisor.DiskSnapshot{Tag: "tag1", Files: both.Files}, hypervisor.ErrNoVolume)
	do("while it is off", hypervisor.SnapshotTake, both)
	do("once more, off", hypervisor.SnapshotTake, both)
	for _, tag := range []string{"tag2", "tag1", "tag2"} {
		of := both
		if of.Tag = tag; tag == "tag1" {
			of.Files = of.Files[:1]
		}
		do("restored "+tag, hypervisor.SnapshotRestore, of)
		do("restored once more "+tag, hypervisor.SnapshotRestore, of)
	}
	do("removed, off", hypervisor.SnapshotForget, both)
	do("removed once more, off", hypervisor.SnapshotForget, both)
	refused("restored from one that was removed", hypervisor.SnapshotRestore, both, hypervisor.ErrNoVolume)
	all, err := hv.Domains(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("it has left %+v, %v", all, err)
	}
	g.start(t, hv)
	g.stop(t, hv)
}
