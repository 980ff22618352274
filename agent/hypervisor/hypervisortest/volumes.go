package hypervisortest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"berth/agent/hypervisor"
)

const mebibyte = 1 << 20

// volume is one of a case: its name is its own, and it goes when the case ends.
func (b Bench) volume(t *testing.T, on Host, pool string) string {
	t.Helper()
	name := "suite-" + newUUID()[:8]
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := on.Hypervisor.DeleteVolume(ctx, pool, name); err != nil && !errors.Is(err, hypervisor.ErrNoVolume) {
			t.Errorf("clean up: %v", err)
		}
	})
	return name
}

// empty makes a volume of 32 MiB.
func (b Bench) empty(t *testing.T, on Host, pool string) string {
	t.Helper()
	name := b.volume(t, on, pool)
	err := on.Hypervisor.CreateVolume(t.Context(), hypervisor.NewVolume{
		Pool: pool, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: 32 * mebibyte,
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// thin makes a volume in the pool whose content is at first that of an image in the shared pool.
func (b Bench) thin(t *testing.T, on Host, image string) string {
	t.Helper()
	name := b.volume(t, on, b.Pool)
	err := on.Hypervisor.CreateVolume(t.Context(), hypervisor.NewVolume{
		Pool: b.Pool, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: 32 * mebibyte,
		BackingPool: b.Shared, BackingName: image, BackingFormat: hypervisor.FormatQCOW2,
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func find(t *testing.T, on Host, pool, name string) hypervisor.Volume {
	t.Helper()
	found, err := on.Hypervisor.LookupVolume(t.Context(), pool, name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func reports(t *testing.T, bench Bench) {
	info, err := bench.Source.Hypervisor.Host(t.Context())
	if err != nil || len(info.Errors) > 0 {
		t.Fatalf("%v, %v", info.Errors, err)
	}
	for _, name := range []string{bench.Pool, bench.Shared} {
		i := slices.IndexFunc(info.Pools, func(p hypervisor.Pool) bool { return p.Name == name })
		if i < 0 {
			t.Fatalf("pool %s is missing: %+v", name, info.Pools)
		}
		p := info.Pools[i]
		if !p.Active || p.Path == "" || p.CapacityBytes <= 0 || p.AvailableBytes <= 0 || p.AvailableBytes > p.CapacityBytes {
			t.Errorf("pool %+v", p)
		}
	}
	if len(info.CPUModels) == 0 || !slices.IsSorted(info.CPUModels) || !slices.IsSorted(info.Bridges) {
		t.Errorf("CPU models %v, bridges %v", info.CPUModels, info.Bridges)
	}
	again, err := bench.Source.Hypervisor.Host(t.Context())
	if err != nil || again.HostCPU != info.HostCPU || !slices.Equal(again.CPUModels, info.CPUModels) {
		t.Errorf("the CPU was %q, and then %q: %v", info.HostCPU, again.HostCPU, err)
	}
}

func volumeLife(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	name := bench.empty(t, bench.Source, bench.Pool)
	got := find(t, bench.Source, bench.Pool, name)
	if got.Pool != bench.Pool || got.Name != name || got.Format != hypervisor.FormatQCOW2 || !strings.HasSuffix(got.Path, "/"+name) ||
		got.CapacityBytes != 32*mebibyte || got.AllocationBytes > mebibyte || got.BackingPath != "" {
		t.Errorf("got %+v", got)
	}
	again := hypervisor.NewVolume{Pool: bench.Pool, Name: name, Format: hypervisor.FormatRaw, CapacityBytes: mebibyte}
	wantErr(t, "the same name again", hv.CreateVolume(t.Context(), again), hypervisor.ErrExists)
	if after := find(t, bench.Source, bench.Pool, name); after != got {
		t.Errorf("the refused one left its mark: %+v", after)
	}
	for _, size := range []int64{48 * mebibyte, 48 * mebibyte, mebibyte} {
		if err := hv.GrowVolume(t.Context(), bench.Pool, name, size); err != nil {
			t.Fatal(err)
		}
		if after := find(t, bench.Source, bench.Pool, name); after.CapacityBytes != 48*mebibyte {
			t.Errorf("asked for %d bytes it has %d", size, after.CapacityBytes)
		}
	}
	if err := hv.DeleteVolume(t.Context(), bench.Pool, name); err != nil {
		t.Fatal(err)
	}
	_, err := hv.LookupVolume(t.Context(), bench.Pool, name)
	wantErr(t, "LookupVolume", err, hypervisor.ErrNoVolume)
	wantErr(t, "DeleteVolume", hv.DeleteVolume(t.Context(), bench.Pool, name), hypervisor.ErrNoVolume)
	wantErr(t, "GrowVolume", hv.GrowVolume(t.Context(), bench.Pool, name, mebibyte), hypervisor.ErrNoVolume)

	raw := bench.volume(t, bench.Source, bench.Pool)
	again.Name = raw
	if err := hv.CreateVolume(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if got := find(t, bench.Source, bench.Pool, raw); got.Format != hypervisor.FormatRaw || got.CapacityBytes != mebibyte {
		t.Errorf("got %+v", got)
	}
}

func thinCopies(t *testing.T, bench Bench) {
	hv, image := bench.Source.Hypervisor, bench.empty(t, bench.Source, bench.Shared)
	name := bench.volume(t, bench.Source, bench.Pool)
	wanted := hypervisor.NewVolume{
		Pool: bench.Pool, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: 40 * mebibyte,
		BackingPool: bench.Shared, BackingName: image, BackingFormat: hypervisor.FormatQCOW2,
	}
	if err := hv.CreateVolume(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	got := find(t, bench.Source, bench.Pool, name)
	if got.CapacityBytes != 40*mebibyte || got.BackingPath != find(t, bench.Source, bench.Shared, image).Path {
		t.Errorf("got %+v", got)
	}
	wanted.Name = bench.volume(t, bench.Source, bench.Pool)
	for what, change := range map[string]func(*hypervisor.NewVolume){
		"smaller than the original":      func(v *hypervisor.NewVolume) { v.CapacityBytes = mebibyte },
		"raw":                            func(v *hypervisor.NewVolume) { v.Format = hypervisor.FormatRaw },
		"of something of unknown format": func(v *hypervisor.NewVolume) { v.BackingFormat = "" },
	} {
		bad := wanted
		change(&bad)
		wantErr(t, "a copy "+what, hv.CreateVolume(t.Context(), bad), hypervisor.ErrUnsupported)
	}
	bad := wanted
	bad.BackingName = "nothing"
	wantErr(t, "a copy of nothing", hv.CreateVolume(t.Context(), bad), hypervisor.ErrNoVolume)
	_, err := hv.LookupVolume(t.Context(), bench.Pool, wanted.Name)
	wantErr(t, "what the refused ones left", err, hypervisor.ErrNoVolume)
}

func noPool(t *testing.T, bench Bench) {
	const nowhere = "nowhere"
	hv, ctx := bench.Source.Hypervisor, t.Context()
	_, err := hv.LookupVolume(ctx, nowhere, "v")
	wantErr(t, "LookupVolume", err, hypervisor.ErrNoPool)
	wanted := hypervisor.NewVolume{Pool: nowhere, Name: "v", Format: hypervisor.FormatQCOW2, CapacityBytes: mebibyte}
	err = hv.CreateVolume(ctx, wanted)
	wantErr(t, "CreateVolume", err, hypervisor.ErrNoPool)
	if !strings.Contains(err.Error(), nowhere) {
		t.Errorf("%q does not name the pool", err)
	}
	wanted.Pool, wanted.BackingPool, wanted.BackingName, wanted.BackingFormat = bench.Pool, nowhere, "image", hypervisor.FormatQCOW2
	wantErr(t, "CreateVolume, of an image", hv.CreateVolume(ctx, wanted), hypervisor.ErrNoPool)
	wantErr(t, "DeleteVolume", hv.DeleteVolume(ctx, nowhere, "v"), hypervisor.ErrNoPool)
	wantErr(t, "GrowVolume", hv.GrowVolume(ctx, nowhere, "v", mebibyte), hypervisor.ErrNoPool)
	wantErr(t, "UploadVolume", hv.UploadVolume(ctx, nowhere, "v", 1, strings.NewReader("x")), hypervisor.ErrNoPool)
}

func refusedVolumes(t *testing.T, bench Bench) {
	hv, name := bench.Source.Hypervisor, bench.volume(t, bench.Source, bench.Pool)
	for _, bad := range []hypervisor.NewVolume{
		{Format: hypervisor.FormatQCOW2}, {
			Format: hypervisor.FormatRaw, CapacityBytes: -1,
		}, {Format: "vmdk", CapacityBytes: mebibyte}, {CapacityBytes: mebibyte},
	} {
		bad.Pool, bad.Name = bench.Pool, name
		wantErr(t, bad.Format, hv.CreateVolume(t.Context(), bad), hypervisor.ErrUnsupported)
	}
	_, err := hv.LookupVolume(t.Context(), bench.Pool, name)
	wantErr(t, "what they left", err, hypervisor.ErrNoVolume)
}

func uploads(t *testing.T, bench Bench) {
	hv, name := bench.Source.Hypervisor, bench.volume(t, bench.Source, bench.Pool)
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	if err := hv.UploadVolume(t.Context(), bench.Pool, name, int64(len(content)), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	got := find(t, bench.Source, bench.Pool, name)
	if got.Format != hypervisor.FormatRaw || got.CapacityBytes != int64(len(content)) || got.AllocationBytes < int64(len(content)) {
		t.Errorf("got %+v", got)
	}
	wantErr(t, "again", hv.UploadVolume(t.Context(), bench.Pool, name, 4, strings.NewReader("more")), hypervisor.ErrExists)

	// The file itself says what it is: here a qcow2 of 16 MiB that has nothing but its header.
	image := bench.volume(t, bench.Source, bench.Pool)
	if err := hv.UploadVolume(t.Context(), bench.Pool, image, int64(len(qcow2Header)), bytes.NewReader(qcow2Header)); err != nil {
		t.Fatal(err)
	}
	if got := find(t, bench.Source, bench.Pool, image); got.Format != hypervisor.FormatQCOW2 || got.CapacityBytes != 16*mebibyte {
		t.Errorf("got %+v", got)
	}
}

// qcow2Header is the beginning of a version 2 file of 16 MiB, as QEMU's docs/interop/qcow2.rst lays it out.
var qcow2Header = append(
	[]byte(
		"QFI\xfb\x00\x00\x00\x02"+"\x00\x00\x00\x00\x00\x00\x00\x00"+"\x00\x00\x00\x00"+"\x00\x00\x00\x10"+"\x00\x00\x00\x00\x01\x00\x00\x00",
	),
	make([]byte, 512-32)...)

var errSource = errors.New("the sender has given up")

func brokenUploads(t *testing.T, bench Bench) {
	hv, name := bench.Source.Hypervisor, bench.volume(t, bench.Source, bench.Pool)
	for what, broken := range map[string]struct {
		content io.Reader
		size    int64
		want    error
	}{
		"fails":        {io.MultiReader(strings.NewReader("so far"), &failing{}), mebibyte, errSource},
		"is too short": {strings.NewReader("so far"), mebibyte, io.ErrUnexpectedEOF},
		"is empty":     {strings.NewReader(""), 0, hypervisor.ErrUnsupported},
	} {
		wantErr(t, "content that "+what, hv.UploadVolume(t.Context(), bench.Pool, name, broken.size, broken.content), broken.want)
		_, err := hv.LookupVolume(t.Context(), bench.Pool, name)
		wantErr(t, "what content that "+what+" leaves", err, hypervisor.ErrNoVolume)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errSource }

func sharedPool(t *testing.T, bench Bench) {
	here, there := bench.Source.Hypervisor, bench.Target.Hypervisor
	name := bench.empty(t, bench.Source, bench.Shared)
	if got := find(t, bench.Target, bench.Shared, name); got.CapacityBytes != 32*mebibyte {
		t.Errorf("the other node sees %+v", got)
	}
	wanted := hypervisor.NewVolume{Pool: bench.Shared, Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: mebibyte}
	wantErr(t, "the same name from the other node", there.CreateVolume(t.Context(), wanted), hypervisor.ErrExists)
	if err := here.GrowVolume(t.Context(), bench.Shared, name, 48*mebibyte); err != nil {
		t.Fatal(err)
	}
	if got := find(t, bench.Target, bench.Shared, name); got.CapacityBytes != 48*mebibyte {
		t.Errorf("grown here, the other node sees %+v", got)
	}
	if err := there.DeleteVolume(t.Context(), bench.Shared, name); err != nil {
		t.Fatal(err)
	}
	_, err := here.LookupVolume(t.Context(), bench.Shared, name)
	wantErr(t, "removed there", err, hypervisor.ErrNoVolume)
	// What libvirt remembers of it here must not be in the way.
	if err := here.CreateVolume(t.Context(), wanted); err != nil {
		t.Error(err)
	}
}

// besideVolume: what stands on a volume is told by the folder of its file, and whether something was written into it.
func besideVolume(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	image := bench.empty(t, bench.Source, bench.Shared)
	first, top := find(t, bench.Source, bench.Shared, image), bench.volume(t, bench.Source, bench.Shared)
	err := hv.CreateVolume(t.Context(), hypervisor.NewVolume{
		Pool: bench.Shared, Name: top, Format: hypervisor.FormatQCOW2, CapacityBytes: 32 * mebibyte,
		BackingPool: bench.Shared, BackingName: image, BackingFormat: hypervisor.FormatQCOW2,
	})
	if err != nil {
		t.Fatal(err)
	}
	beside, err := hv.VolumesBeside(t.Context(), first.Path)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(beside, func(v hypervisor.Volume) bool { return v.Name == top })
	below := slices.IndexFunc(beside, func(v hypervisor.Volume) bool { return v.Path == first.Path })
	if at < 0 || below < 0 || beside[at].BackingPath != first.Path || !beside[at].Empty || beside[below].Empty ||
		beside[at].Format != hypervisor.FormatQCOW2 || beside[at].ModifiedAt.Before(beside[below].ModifiedAt) ||
		beside[below].ModifiedAt.IsZero() {
		t.Errorf("beside %s are %+v", first.Path, beside)
	}
	_, is, known := hypervisor.OverlayOf(first.Path, beside, func(string) bool { return false })
	if is || !known {
		t.Errorf("on top of it is something %v, known %v", is, known)
	}
	_, err = hv.VolumesBeside(t.Context(), "/nowhere/at/all/disk")
	wantErr(t, "a folder of no pool", err, hypervisor.ErrNoPool)
}
