package hypervisortest

import (
	"testing"

	"berth/agent/hypervisor"
)

func sharedLock(t *testing.T, bench Bench) {
	name := bench.volume(t, bench.Source, bench.Shared)
	for range 2 { // what is left of one try is not in the way of the next
		release, err := bench.Source.Hypervisor.HoldLock(t.Context(), bench.Shared, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []Host{bench.Source, bench.Target} {
			if held, err := host.Hypervisor.LockHeld(t.Context(), bench.Shared, name); err != nil || !held {
				t.Errorf("%s: held %t, %v", host.URI, held, err)
			}
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = bench.Target.Hypervisor.LockHeld(t.Context(), bench.Shared, name)
		wantErr(t, "LockHeld of what was released", err, hypervisor.ErrNoVolume)
	}
	// It is the lock that a guest's disk has while the guest runs.
	disk := bench.empty(t, bench.Source, bench.Shared)
	g := newGuest(t, bench).onVolume(bench.Shared, disk)
	g.start(t, bench.Source.Hypervisor)
	if held, err := bench.Target.Hypervisor.LockHeld(t.Context(), bench.Shared, disk); err != nil || !held {
		t.Errorf("the disk of a guest that runs: held %t, %v", held, err)
	}
	g.stop(t, bench.Source.Hypervisor)
	if held, err := bench.Target.Hypervisor.LockHeld(t.Context(), bench.Shared, disk); err != nil || held {
		t.Errorf("the disk of a guest that has ended: held %t, %v", held, err)
	}
	own := bench.volume(t, bench.Source, bench.Pool)
	release, err := bench.Source.Hypervisor.HoldLock(t.Context(), bench.Pool, own)
	if err != nil {
		t.Fatal(err)
	}
	_, err = bench.Target.Hypervisor.LockHeld(t.Context(), bench.Pool, own)
	wantErr(t, "LockHeld in a pool of the other host's own", err, hypervisor.ErrNoVolume)
	if err := release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = bench.Source.Hypervisor.HoldLock(t.Context(), "no-such-pool", own)
	wantErr(t, "HoldLock without a pool", err, hypervisor.ErrNoPool)
}
