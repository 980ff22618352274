package hypervisor

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/integration/lab"
	"berth/shared/domxml"
)

const (
	mebibyte = 1 << 20
	diskSize = 64 * mebibyte
)

// image puts a raw image of random content into the shared pool and returns its name.
func image(t *testing.T, on hypervisor.Hypervisor) string {
	t.Helper()
	const name = "image.raw"
	random := rand.NewChaCha8([32]byte{1})
	if err := on.UploadVolume(t.Context(), "shared", name, 24*mebibyte, io.LimitReader(random, 24*mebibyte)); err != nil {
		t.Fatal(err)
	}
	return name
}

// thinCopy makes a disk of the image in the host's own pool and returns its path.
func thinCopy(t *testing.T, on hypervisor.Hypervisor, image, name string) string {
	t.Helper()
	err := on.CreateVolume(t.Context(), hypervisor.NewVolume{
		Pool: ownPool, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize,
		BackingPool: "shared", BackingName: image, BackingFormat: hypervisor.FormatRaw,
	})
	if err != nil {
		t.Fatal(err)
	}
	return path(t, on, name)
}

func path(t *testing.T, on hypervisor.Hypervisor, name string) string {
	t.Helper()
	found, err := on.LookupVolume(t.Context(), ownPool, name)
	if err != nil {
		t.Fatal(err)
	}
	return found.Path
}

func checksum(t *testing.T, host *lab.Host, file string) string {
	t.Helper()
	sum, err := host.Checksum(t.Context(), file, hypervisor.FormatQCOW2, diskSize)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A thin copy in a pool of one host travels live to an empty volume of the other's pool, in another folder: what arrives
// is the same to the last byte, and needs no image any more.
func TestCopiedDisksAreEqual(t *testing.T) {
	l, bench := raise(t)
	source, target := bench.Source.Hypervisor, bench.Target.Hypervisor
	from := thinCopy(t, source, image(t, source), "disk.qcow2")
	empty := hypervisor.NewVolume{Pool: ownPool, Name: "disk.qcow2", Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize}
	if err := target.CreateVolume(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	want := checksum(t, l.Hosts[0], from)

	id := domxml.Identity{
		UUID: "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0001", Name: "mover", Mark: domxml.Mark{Epoch: 1, Operation: "op-1", Node: "node1"},
	}
	xml, err := domxml.Render(domxml.Spec{
		MemoryBytes: 64 * mebibyte, VCPUs: 1, Disks: []domxml.Disk{{Path: from, Format: hypervisor.FormatQCOW2}},
	},
		id, domxml.Machine{DomainType: "qemu", Arch: "x86_64", Type: "pc"})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	if xml, err = source.XML(t.Context(), id.UUID); err != nil {
		t.Fatal(err)
	}
	id.Mark = domxml.Mark{Epoch: 2, Operation: "op-2", Node: "node2"}
	if xml, err = domxml.WithIdentity(xml, id); err != nil {
		t.Fatal(err)
	}
	xml = strings.Replace(xml, "<source file='"+from+"'", "<source pool='"+ownPool+"' volume='disk.qcow2'", 1)
	xml = strings.Replace(xml, "<disk type='file'", "<disk type='volume'", 1)
	begin := time.Now()
	err = source.Migrate(t.Context(), id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: xml, Paused: true, CopyDisks: []string{"vda"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("memory and disk were over in %v", time.Since(begin).Round(time.Millisecond))
	if _, err := source.Lookup(t.Context(), id.UUID); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("the source has it still: %v", err)
	}
	arrived := path(t, target, "disk.qcow2")
	if got := checksum(t, l.Hosts[1], arrived); got != want {
		t.Errorf("%s has the checksum %s, what left had %s", arrived, got, want)
	}
	if err := target.Resume(t.Context(), id.UUID, 2); err != nil {
		t.Error(err)
	}
	// Nobody needs the disk at the source, nor the image.
	if err := errors.Join(
		source.DeleteVolume(t.Context(), ownPool, "disk.qcow2"), source.DeleteVolume(t.Context(), "shared", "image.raw"),
	); err != nil {
		t.Error(err)
	}
	if got := checksum(t, l.Hosts[1], arrived); got != want {
		t.Errorf("without its image the disk has the checksum %s, want %s", got, want)
	}
}

// Two dozen volumes at once in one pool: libvirt refuses to look at a pool while it makes a volume there, and nobody may
// notice.
func TestManyVolumesAtOnce(t *testing.T) {
	_, bench := raise(t)
	hv := bench.Source.Hypervisor
	origin := image(t, hv)
	var group sync.WaitGroup
	for i := range 20 {
		name := "disk-" + string(rune('a'+i)) + ".qcow2"
		group.Go(func() {
			err := hv.CreateVolume(t.Context(), hypervisor.NewVolume{
				Pool: ownPool, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize,
				BackingPool: "shared", BackingName: origin, BackingFormat: hypervisor.FormatRaw,
			})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := hv.LookupVolume(t.Context(), ownPool, name); err != nil {
				t.Error(err)
			}
			if _, err := hv.LookupVolume(t.Context(), ownPool, "not-"+name); !errors.Is(err, hypervisor.ErrNoVolume) {
				t.Errorf("what is not there: %v", err)
			}
			if err := hv.DeleteVolume(t.Context(), ownPool, name); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestAFullPool(t *testing.T) {
	l, bench := raise(t)
	host, hv := l.Hosts[0], bench.Source.Hypervisor
	const folder = "/var/lib/libvirt/own"
	if err := host.LimitDisk(t.Context(), folder, 16*mebibyte); err != nil {
		t.Fatal(err)
	}
	zeros := io.LimitReader(rand.NewChaCha8([32]byte{}), 32*mebibyte)
	err := hv.UploadVolume(t.Context(), ownPool, "large.raw", 32*mebibyte, zeros)
	if !errors.Is(err, hypervisor.ErrNoSpace) {
		t.Errorf("an upload that does not fit: %v", err)
	}
	if left, err := host.Volumes(t.Context()); err != nil || slices.Contains(left, ownPool+"/large.raw") {
		t.Errorf("it left %v, %v", left, err)
	}
	if err := host.FillDisk(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	err = hv.CreateVolume(t.Context(), hypervisor.NewVolume{
		Pool: ownPool, Name: "disk.qcow2", Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize,
	})
	if !errors.Is(err, hypervisor.ErrNoSpace) {
		t.Errorf("a volume in a full pool: %v", err)
	}
	if left, err := host.Volumes(t.Context()); err != nil || slices.Contains(left, ownPool+"/disk.qcow2") {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestAPoolThatVanished(t *testing.T) {
	l, bench := raise(t)
	host, hv := l.Hosts[0], bench.Source.Hypervisor
	wanted := hypervisor.NewVolume{Pool: ownPool, Name: "disk.qcow2", Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize}
	if err := hv.CreateVolume(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	told := make(chan hypervisor.Event, 16)
	go func() { _ = hv.Subscribe(t.Context(), func(e hypervisor.Event) { told <- e }) }()
	if _, err := host.Exec(t.Context(), "mv", "/var/lib/libvirt/own", "/var/lib/libvirt/gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := hv.LookupVolume(t.Context(), ownPool, wanted.Name); !errors.Is(err, hypervisor.ErrNoPool) {
		t.Errorf("LookupVolume: %v", err)
	}
	if err := hv.CreateVolume(t.Context(), wanted); !errors.Is(err, hypervisor.ErrNoPool) {
		t.Errorf("CreateVolume: %v", err)
	}
	select {
	case e := <-told:
		if e.Kind != hypervisor.EventChanged || e.UUID != "" || !strings.Contains(e.Detail, ownPool) {
			t.Errorf("got %+v", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody was told")
	}
	active := func() bool {
		info, err := hv.Host(t.Context())
		if err != nil || len(info.Errors) > 0 {
			t.Fatal(info.Errors, err)
		}
		return slices.ContainsFunc(info.Pools, func(p hypervisor.Pool) bool { return p.Name == ownPool && p.Active })
	}
	if active() {
		t.Error("the pool is said to be active")
	}
	if _, err := host.Exec(t.Context(), "sh", "-c", "mv /var/lib/libvirt/gone /var/lib/libvirt/own && virsh pool-start "+ownPool); err != nil {
		t.Fatal(err)
	}
	if _, err := hv.LookupVolume(t.Context(), ownPool, wanted.Name); err != nil || !active() {
		t.Errorf("back again: %v", err)
	}
}
