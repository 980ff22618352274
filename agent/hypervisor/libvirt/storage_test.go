package libvirt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// The test driver keeps a pool in memory, so what libvirt is told and asked runs without a daemon.
func TestVolumesOfTheTestDriver(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	const pool = "default-pool"
	wanted := hypervisor.NewVolume{Pool: pool, Name: "disk", Format: hypervisor.FormatQCOW2, CapacityBytes: 1 << 20}
	if err := h.CreateVolume(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	found, err := h.LookupVolume(t.Context(), pool, "disk")
	if err != nil || found.Path != "/default-pool/disk" || found.CapacityBytes != 1<<20 ||
		found.Format != hypervisor.FormatQCOW2 || found.Pool != pool {
		t.Errorf("got %+v, %v", found, err)
	}
	if err := h.CreateVolume(t.Context(), wanted); !errors.Is(err, hypervisor.ErrExists) {
		t.Errorf("twice: %v", err)
	}
	if err := h.DeleteVolume(t.Context(), pool, "disk"); err != nil {
		t.Error(err)
	}
	if err := h.DeleteVolume(t.Context(), pool, "disk"); !errors.Is(err, hypervisor.ErrNoVolume) {
		t.Errorf("removed twice: %v", err)
	}
	wanted.Pool = "nowhere"
	if err := h.CreateVolume(t.Context(), wanted); !errors.Is(err, hypervisor.ErrNoPool) || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no pool: %v", err)
	}
}

// A pool whose file system hangs has no say in anything but itself.
func TestAPoolThatHangs(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	release := make(chan struct{})
	h.listing.DoChan("", func() (any, error) {
		<-release
		h.overdue.Store(false)
		return []hypervisor.Pool(nil), nil
	})
	for _, limit := range []time.Duration{queryTimeout + time.Second, time.Second} {
		begin := time.Now()
		info, err := h.Host(t.Context())
		if err != nil || len(info.Pools) > 0 || len(info.Networks) != 1 || len(info.Errors) != 1 || info.Errors[0].Reading != "storage_pools" {
			t.Errorf("while the listing hangs: %+v, %v", info.Errors, err)
		}
		if took := time.Since(begin); took > limit {
			t.Errorf("it took %s", took)
		}
	}
	close(release)
	await(t, "listed", func() bool { info, err := h.Host(t.Context()); return err == nil && len(info.Pools) == 1 })

	// Calls to one pool wait for their turn; those to another do not.
	gate, _ := h.gates.LoadOrStore("hangs", make(chan struct{}, poolCalls))
	for range poolCalls {
		gate.(chan struct{}) <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := h.LookupVolume(ctx, "hangs", "disk"); !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("LookupVolume: %v", err)
	}
	if _, err := h.LookupVolume(t.Context(), "default-pool", "disk"); !errors.Is(err, hypervisor.ErrNoVolume) {
		t.Errorf("in another pool: %v", err)
	}
	if up, err := h.Connected(); !up {
		t.Errorf("libvirt is said to be stuck: %v", err)
	}
}

func TestUploadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	content := bytes.NewReader([]byte("content"))
	if err := pump(ctx, nil, 7, content); !errors.Is(err, context.Canceled) || content.Len() != 7 {
		t.Errorf("%v, %d bytes are left", err, content.Len())
	}
}

func TestStorageErrorsHaveCauses(t *testing.T) {
	for _, c := range []struct {
		code    libvirtgo.ErrorNumber
		message string
		want    error
	}{
		{libvirtgo.ERR_NO_STORAGE_POOL, "m", hypervisor.ErrNoPool},
		{libvirtgo.ERR_NO_STORAGE_VOL, "m", hypervisor.ErrNoVolume},
		{libvirtgo.ERR_STORAGE_VOL_EXIST, "m", hypervisor.ErrExists},
		{libvirtgo.ERR_INTERNAL_ERROR, "qemu-img: x: Could not write: No space left on device", hypervisor.ErrNoSpace},
		{libvirtgo.ERR_SYSTEM_ERROR, "cannot write: Disk quota exceeded", hypervisor.ErrNoSpace},
	} {
		if err := explain(
			libvirtgo.Error{Code: c.code, Message: c.message},
		); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("code %d: got %v, want %v", c.code, err, c.want)
		}
	}
}

func TestSectors(t *testing.T) {
	for size, want := range map[int64]uint64{1: 512, 512: 512, 513: 1024, 1 << 40: 1 << 40} {
		if got := sectors(size); got != want {
			t.Errorf("%d bytes: got %d, want %d", size, got, want)
		}
	}
}

func TestBridges(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"br1/bridge", "br0/bridge", "eth0/brport"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := bridges(root); err != nil || !slices.Equal(got, []string{"br0", "br1"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := bridges(filepath.Join(root, "nothing")); err == nil {
		t.Error("what cannot be read was read")
	}
}
