package hypervisortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// withDisk gives the guest one disk.
func (g guest) withDisk(source, attributes string) guest {
	disk := fmt.Sprintf("<devices><disk type='%s' device='disk'><driver name='qemu' type='qcow2' cache='none' discard='unmap'/><source %s/>"+
		"<target dev='vda' bus='virtio'/></disk>", source, attributes)
	g.xml = strings.Replace(g.xml, "<devices>", disk, 1)
	return g
}

// onVolume names the disk's volume as a migration to a pool elsewhere has to.
func (g guest) onVolume(pool, name string) guest {
	return g.withDisk("volume", fmt.Sprintf("pool='%s' volume='%s'", pool, name))
}

// onFile names it by its path.
func (g guest) onFile(path string) guest { return g.withDisk("file", fmt.Sprintf("file='%s'", path)) }

// stop ends the guest, so that its volumes can go.
func (g guest) stop(t *testing.T, on hypervisor.Hypervisor) {
	t.Helper()
	domain, err := on.Lookup(t.Context(), g.id.UUID)
	if err == nil {
		err = on.Destroy(t.Context(), g.id.UUID, domain.Epoch)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, on, g.id.UUID, "absent", isAbsent)
}

func inUse(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	image := bench.empty(t, bench.Source, bench.Shared)
	for _, named := range []string{"by volume", "by path"} {
		name := bench.thin(t, bench.Source, image)
		disk, backing := find(t, bench.Source, bench.Pool, name), find(t, bench.Source, bench.Shared, image)
		g := newGuest(t, bench)
		if named == "by path" {
			g = g.onFile(disk.Path)
		} else {
			g = g.onVolume(bench.Pool, name)
		}
		g.start(t, hv)
		users, err := hv.VolumesInUse(t.Context())
		if err != nil || users[disk.Path] != g.id.UUID || users[backing.Path] != g.id.UUID {
			t.Errorf("%s: in use are %v, %v", named, users, err)
		}
		wantErr(t, named+": removing its volume", hv.DeleteVolume(t.Context(), bench.Pool, name), hypervisor.ErrInUse)
		wantErr(t, named+": removing what that is a copy of", hv.DeleteVolume(t.Context(), bench.Shared, image), hypervisor.ErrInUse)
		wantErr(t, named+": growing its volume", hv.GrowVolume(t.Context(), bench.Pool, name, 64*mebibyte), hypervisor.ErrInUse)
		g.stop(t, hv)
		if err := hv.DeleteVolume(t.Context(), bench.Pool, name); err != nil {
			t.Errorf("%s, afterwards: %v", named, err)
		}
	}
}

// devices: what a domain shows of its disk is what the next start can be given in place of another one.
func devices(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	image := bench.empty(t, bench.Source, bench.Shared)
	name := bench.thin(t, bench.Source, image)
	path := find(t, bench.Source, bench.Pool, name).Path
	g, other := newGuest(t, bench).onFile(path), newGuest(t, bench).onFile("/nowhere")
	g.start(t, hv)
	shown, err := hv.Lookup(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	g.stop(t, hv)
	if len(shown.Devices) != 1 {
		t.Fatalf("it shows %+v", shown.Devices)
	}
	disk := shown.Devices[0]
	if disk.Kind != domxml.DiskDevice || disk.Key != "vda" || disk.Source.Path != path || disk.Format != "qcow2" {
		t.Errorf("it shows %+v", disk)
	}
	other.xml, err = domxml.EditDevices(other.xml, []domxml.DeviceEdit{{Kind: disk.Kind, Key: disk.Key, XML: disk.XML}})
	if err != nil {
		t.Fatal(err)
	}
	other.start(t, hv)
	all, err := hv.Domains(t.Context())
	at := slices.IndexFunc(all, func(d hypervisor.Domain) bool { return d.UUID == other.id.UUID })
	if err != nil || at < 0 || !slices.Equal(all[at].Devices, shown.Devices) {
		t.Errorf("started with that, the list has %+v: %v", all, err)
	}
	other.stop(t, hv)
}

func growing(t *testing.T, bench Bench) {
	hv, name := bench.Source.Hypervisor, bench.empty(t, bench.Source, bench.Pool)
	path := find(t, bench.Source, bench.Pool, name).Path
	g := newGuest(t, bench).onVolume(bench.Pool, name)
	wantErr(t, "without the guest", hv.GrowDisk(t.Context(), g.id.UUID, path, 64*mebibyte), hypervisor.ErrNotFound)
	_, err := hv.DiskSizes(t.Context(), g.id.UUID)
	wantErr(t, "the sizes without the guest", err, hypervisor.ErrNotFound)
	g.start(t, hv)
	for _, size := range []int64{64 * mebibyte, 64 * mebibyte, mebibyte} {
		if err := hv.GrowDisk(t.Context(), g.id.UUID, path, size); err != nil {
			t.Fatal(err)
		}
		if got := find(t, bench.Source, bench.Pool, name); got.CapacityBytes != 64*mebibyte {
			t.Errorf("asked for %d bytes the volume has %d", size, got.CapacityBytes)
		}
	}
	sizes, err := hv.DiskSizes(t.Context(), g.id.UUID)
	if err != nil || len(sizes) != 1 || sizes["vda"] != 64*mebibyte {
		t.Errorf("its process tells the sizes %v, %v", sizes, err)
	}
	if shown, err := hv.Lookup(t.Context(), g.id.UUID); err != nil || shown.DiskSizes != nil && shown.DiskSizes["vda"] != 64*mebibyte {
		t.Errorf("it shows the sizes %v, %v", shown.DiskSizes, err)
	}
	wantErr(t, "a disk that it does not have", hv.GrowDisk(t.Context(), g.id.UUID, path+"x", mebibyte), hypervisor.ErrNoVolume)
	g.stop(t, hv)
}

func lostVolume(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	g := newGuest(t, bench).onVolume(bench.Pool, "suite-nothing")
	wantErr(t, "Start", hv.Start(t.Context(), g.xml), hypervisor.ErrNoVolume)
	eventually(t, hv, g.id.UUID, "absent", isAbsent)
}

// copyDisks: the thin copy becomes a whole one, in the target's pool, under another name.
func copyDisks(t *testing.T, bench Bench) {
	source, target := bench.Source.Hypervisor, bench.Target.Hypervisor
	image := bench.empty(t, bench.Source, bench.Shared)
	from := bench.thin(t, bench.Source, image)
	to := bench.empty(t, bench.Target, bench.Pool)
	path := find(t, bench.Source, bench.Pool, from).Path
	g := newGuest(t, bench).onFile(path)
	g.start(t, source)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	xml := strings.Replace(g.moved(t, source, 2), "<source file='"+path+"'", "<source pool='"+bench.Pool+"' volume='"+to+"'", 1)
	xml = strings.Replace(xml, "<disk type='file'", "<disk type='volume'", 1)
	err := source.Migrate(ctx, g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: xml, Paused: true, CopyDisks: []string{"vda"},
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, source, g.id.UUID, "absent", isAbsent)
	eventually(t, target, g.id.UUID, "paused", inState(hypervisor.Paused))
	volume := find(t, bench.Target, bench.Pool, to)
	users, err := target.VolumesInUse(t.Context())
	if err != nil || users[volume.Path] != g.id.UUID || volume.BackingPath != "" {
		t.Errorf("on the target it has %+v, in use are %v: %v", volume, users, err)
	}
	if _, found := users[find(t, bench.Target, bench.Shared, image).Path]; found {
		t.Error("on the target it still needs the image")
	}
	if err := target.Resume(t.Context(), g.id.UUID, 2); err != nil {
		t.Fatal(err)
	}
	if err := source.DeleteVolume(t.Context(), bench.Pool, from); err != nil {
		t.Errorf("what was left at the source: %v", err)
	}
	g.stop(t, target)
}

func abortCopy(t *testing.T, bench Bench) {
	source, target := bench.Source.Hypervisor, bench.Target.Hypervisor
	from, to := bench.volume(t, bench.Source, bench.Pool), bench.volume(t, bench.Target, bench.Pool)
	for on, name := range map[hypervisor.Hypervisor]string{source: from, target: to} {
		wanted := hypervisor.NewVolume{Pool: bench.Pool, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: 32 * mebibyte}
		if err := on.CreateVolume(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
	g := newGuest(t, bench).onVolume(bench.Pool, from)
	g.start(t, source)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	xml := strings.Replace(g.moved(t, source, 2), from, to, 1)
	done := make(chan error, 1)
	go func() {
		done <- source.Migrate(ctx, g.id.UUID, hypervisor.MigrateOptions{
			TargetURI: bench.Target.URI, DomainXML: xml, Paused: true, CopyDisks: []string{"vda"}, BandwidthBPS: mebibyte,
		})
	}()
	var job hypervisor.Job
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) &&
		(!job.Active || job.DiskTotal == 0); time.Sleep(50 * time.Millisecond) {
		job, _ = source.Job(t.Context(), g.id.UUID, false)
	}
	if job.DiskTotal != 32*mebibyte || job.DiskRemaining > job.DiskTotal || job.DataTotal < job.DiskTotal {
		t.Errorf("the job tells of the disk %+v", job)
	}
	if err := source.AbortJob(t.Context(), g.id.UUID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Migrate", <-done, hypervisor.ErrAborted)
	eventually(t, source, g.id.UUID, "running without a job", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.State == hypervisor.Running && !d.JobActive && d.Epoch == 1
	})
	eventually(t, target, g.id.UUID, "absent", isAbsent)
	if err := target.DeleteVolume(t.Context(), bench.Pool, to); err != nil {
		t.Errorf("what was left at the target: %v", err)
	}
	g.stop(t, source)
}

func shareDisks(t *testing.T, bench Bench) {
	source, target := bench.Source.Hypervisor, bench.Target.Hypervisor
	name := bench.empty(t, bench.Source, bench.Shared)
	path := find(t, bench.Source, bench.Shared, name).Path
	g := newGuest(t, bench).onFile(path)
	g.start(t, source)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := source.Migrate(ctx, g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: g.moved(t, source, 2), Paused: true, SharedDisks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if job, err := source.Job(t.Context(), g.id.UUID, true); err != nil || job.DiskTotal != 0 {
		t.Errorf("figures: %+v, %v", job, err)
	}
	users, err := target.VolumesInUse(t.Context())
	if err != nil || users[path] != g.id.UUID {
		t.Errorf("on the target are in use %v: %v", users, err)
	}
	g.stop(t, target)
}

func forgottenDisk(t *testing.T, bench Bench) {
	source, target := bench.Source.Hypervisor, bench.Target.Hypervisor
	name := bench.empty(t, bench.Source, bench.Pool)
	g := newGuest(t, bench).onFile(find(t, bench.Source, bench.Pool, name).Path)
	g.start(t, source)
	err := source.Migrate(t.Context(), g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: g.moved(t, source, 2), Paused: true,
	})
	wantErr(t, "Migrate", err, hypervisor.ErrUnsafe)
	eventually(t, source, g.id.UUID, "running without a job", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.State == hypervisor.Running && !d.JobActive
	})
	eventually(t, target, g.id.UUID, "absent", isAbsent)
	g.stop(t, source)
}

func consoles(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	_, err := hv.OpenConsole(t.Context(), g.id.UUID, false)
	wantErr(t, "without the guest", err, hypervisor.ErrNotFound)
	g.start(t, hv)
	open := func(force bool) io.ReadWriteCloser {
		t.Helper()
		c, err := hv.OpenConsole(t.Context(), g.id.UUID, force)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := open(false)
	if _, err := first.Write([]byte("hello\r")); err != nil {
		t.Error(err)
	}
	_, err = hv.OpenConsole(t.Context(), g.id.UUID, false)
	wantErr(t, "a second one", err, hypervisor.ErrBusy)
	second := open(true)
	drain(t, "the one that was cut off", first)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := first.Write([]byte("x")); err == nil {
		t.Error("a closed console takes input")
	}
	if err := errors.Join(second.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	third := open(false)
	g.stop(t, hv)
	drain(t, "the one whose guest has gone", third)
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

// drain reads until the end, which must come.
func drain(t *testing.T, what string, c io.ReadWriteCloser) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Fatalf("%s is never told", what)
	}
}
