package hypervisortest

import (
	"testing"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// changing attaches a disk to a guest that runs. The guest is firmware alone, so what is detached may stay.
func changing(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	name := bench.empty(t, bench.Source, bench.Pool)
	g := newGuest(t, bench)
	g.start(t, hv)
	device, err := domxml.NewDisk(
		domxml.Disk{Pool: bench.Pool, Volume: name, Format: "qcow2"}, func(target string) bool { return target == "vda" },
	)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "under another epoch", hv.ChangeDevice(t.Context(), g.id.UUID, 2, hypervisor.Attach, device.XML), hypervisor.ErrOtherEpoch)
	if err := hv.ChangeDevice(t.Context(), g.id.UUID, 1, hypervisor.Attach, device.XML); err != nil {
		t.Fatal(err)
	}
	text, err := hv.XML(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	live, err := domxml.Devices(text)
	if err != nil || len(live) != 1 || live[0].Key != "vdb" || live[0].Source != (domxml.Source{Pool: bench.Pool, Volume: name}) {
		t.Errorf("it has %+v, %v", live, err)
	}
	eventually(t, hv, g.id.UUID, "with its disk", func(d hypervisor.Domain, err error) bool {
		return err == nil && len(d.Devices) == 1 && d.Devices[0].Key == "vdb"
	})
	if err := hv.ChangeDevice(t.Context(), g.id.UUID, 1, hypervisor.Attach, device.XML); err == nil {
		t.Error("it was attached twice")
	}
	if err := hv.ChangeDevice(t.Context(), g.id.UUID, 1, hypervisor.Detach, device.XML); err != nil {
		t.Errorf("detach: %v", err)
	}
	g.stop(t, hv)
	if err := hv.ChangeDevice(t.Context(), g.id.UUID, 1, hypervisor.Attach, device.XML); err == nil {
		t.Error("it was attached to a guest that is gone")
	}
}

// resizing takes memory from a guest that runs, and gives it back. The guest is firmware alone, so it may keep what it has.
func resizing(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	const half = 32 << 20
	wantErr(t, "under another epoch", hv.Resize(t.Context(), g.id.UUID, 2, half, 0), hypervisor.ErrOtherEpoch)
	wantErr(t, "to more memory than it has", hv.Resize(t.Context(), g.id.UUID, 1, 1<<40, 0), hypervisor.ErrInvalidState)
	wantErr(t, "to more vCPUs than it has", hv.Resize(t.Context(), g.id.UUID, 1, half, 64), hypervisor.ErrInvalidState)
	if err := hv.Resize(t.Context(), g.id.UUID, 1, half, 1); err != nil {
		t.Error(err)
	}
	if err := hv.Resize(t.Context(), g.id.UUID, 1, 64<<20, 0); err != nil {
		t.Error(err)
	}
	if has, err := hv.Balloon(t.Context(), g.id.UUID); err != nil || has != 64<<20 {
		t.Errorf("with all of its memory again it has %d, %v", has, err)
	}
	g.stop(t, hv)
	if err := hv.Resize(t.Context(), g.id.UUID, 1, half, 0); err == nil {
		t.Error("a guest that is gone was resized")
	}
	if has, err := hv.Balloon(t.Context(), g.id.UUID); err == nil {
		t.Errorf("a guest that is gone has %d", has)
	}
}
