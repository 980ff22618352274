package qcow2

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	testSize = 1 << 30
	testFile = 4 << 16 // header, refcount table and block, L1 table
)

// header is the beginning of a good image as QEMU makes it.
func header(version uint32, change func(set32 func(at int, v uint32), set64 func(at int, v uint64))) []byte {
	h := make([]byte, HeaderLength)
	set32 := func(at int, v uint32) { binary.BigEndian.PutUint32(h[at:], v) }
	set64 := func(at int, v uint64) { binary.BigEndian.PutUint64(h[at:], v) }
	copy(h, magic[:])
	set32(4, version)
	set32(20, 16)
	set64(24, testSize)
	set32(36, 2)
	set64(40, 3<<16)
	set64(48, 1<<16)
	set32(56, 1)
	if version == 3 {
		set32(96, 4)
		set32(100, 104)
	}
	if change != nil {
		change(set32, set64)
	}
	return h
}

type set32 = func(int, uint32)

type set64 = func(int, uint64)

func TestAGoodImage(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		h, err := Parse(header(version, nil))
		if err != nil {
			t.Fatal(err)
		}
		if h.Version != int(version) || h.Size != testSize || h.ClusterSize != 1<<16 {
			t.Errorf("version %d: read %+v", version, h)
		}
		if err := h.Check(testFile); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestImagesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		begin []byte
		want  error
		say   string
	}{
		"nothing":            {nil, ErrFormat, "does not begin like a qcow2 image"},
		"something else":     {[]byte("MZ and so on"), ErrFormat, "does not begin like a qcow2 image"},
		"cut short":          {header(3, nil)[:50], ErrFormat, "ends within its header"},
		"version 3 cut":      {header(3, nil)[:90], ErrFormat, "ends within its header"},
		"version 1":          {header(1, nil), ErrFormat, "version 1"},
		"version 4":          {header(4, nil), ErrFormat, "version 4"},
		"tiny clusters":      {header(3, func(s set32, _ set64) { s(20, 8) }), ErrFormat, "clusters of 2^8"},
		"giant clusters":     {header(3, func(s set32, _ set64) { s(20, 22) }), ErrFormat, "clusters of 2^22"},
		"too large":          {header(3, func(_ set32, l set64) { l(24, MaxSize+1) }), ErrFormat, "more than 1 PiB"},
		"a negative size":    {header(3, func(_ set32, l set64) { l(24, 1<<63) }), ErrFormat, "more than 1 PiB"},
		"short header":       {header(3, func(s set32, _ set64) { s(100, 96) }), ErrFormat, "a header of 96"},
		"long header":        {header(3, func(s set32, _ set64) { s(100, 1<<17) }), ErrFormat, "a header of"},
		"odd refcounts":      {header(3, func(s set32, _ set64) { s(96, 7) }), ErrFormat, "2^7 bits"},
		"a backing file":     {header(3, func(_ set32, l set64) { l(8, 512) }), ErrUnfit, "backing file"},
		"a data file":        {header(3, func(_ set32, l set64) { l(72, dataFile) }), ErrUnfit, "external data file"},
		"AES":                {header(2, func(s set32, _ set64) { s(32, 1) }), ErrUnfit, "encrypted"},
		"LUKS":               {header(3, func(s set32, _ set64) { s(32, 2) }), ErrUnfit, "encrypted"},
		"corrupt":            {header(3, func(_ set32, l set64) { l(72, corrupt) }), ErrUnfit, "corrupt"},
		"from the future":    {header(3, func(_ set32, l set64) { l(72, 1<<9) }), ErrUnfit, "newer QEMU"},
		"snapshots":          {header(3, func(s set32, _ set64) { s(60, 2) }), ErrUnfit, "internal snapshots"},
		"no size":            {header(3, func(_ set32, l set64) { l(24, 0) }), ErrUnfit, "no size"},
		"L1 table nowhere":   {header(3, func(_ set32, l set64) { l(40, 0) }), ErrFormat, "L1 table is at byte 0"},
		"L1 table askew":     {header(3, func(_ set32, l set64) { l(40, 3<<16+8) }), ErrFormat, "L1 table is at"},
		"L1 table cut off":   {header(3, func(s set32, _ set64) { s(36, 1<<16) }), ErrFormat, "behind the file's end"},
		"L1 table far off":   {header(3, func(_ set32, l set64) { l(40, 1<<64-1<<16) }), ErrFormat, "behind the file's end"},
		"L1 table too short": {header(3, func(s set32, _ set64) { s(36, 1) }), ErrFormat, "too short"},
		"refcounts cut off":  {header(3, func(s set32, _ set64) { s(56, 9) }), ErrFormat, "refcount table ends"},
	} {
		h, err := Parse(tc.begin)
		if err == nil {
			err = h.Check(testFile)
		}
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%s: %v, want %v with %q", name, err, tc.want, tc.say)
		}
	}
}

func TestCapacity(t *testing.T) {
	good := header(3, nil)
	for _, tc := range []struct {
		format string
		begin  []byte
		file   int64
		want   int64
		err    error
	}{
		{FormatQCOW2, good, testFile, testSize, nil},
		{FormatQCOW2, make([]byte, 512), 512, 0, ErrFormat},
		{FormatQCOW2, good, 512, testSize, ErrFormat},
		{FormatRaw, make([]byte, 512), 1024, 1024, nil},
		{FormatRaw, nil, 0, 0, ErrUnfit},
		{FormatRaw, make([]byte, 512), 1000, 0, ErrUnfit},
		{FormatRaw, make([]byte, 512), MaxSize + 512, 0, ErrUnfit},
		{FormatRaw, good, testFile, 0, ErrFormat},
		{"vmdk", good, testFile, 0, ErrFormat},
		{"", good, testFile, 0, ErrFormat},
	} {
		got, err := Capacity(tc.format, tc.begin, tc.file)
		if got != tc.want || !errors.Is(err, tc.err) || err != nil && NextStep(err) == "" {
			t.Errorf("%q of %d bytes: %d, %v; want %d, %v", tc.format, tc.file, got, err, tc.want, tc.err)
		}
	}
}

// What other features QEMU has, none of which stands in the way.
func TestFeaturesThatAreNoHindrance(t *testing.T) {
	h, err := Parse(header(3, func(s set32, l set64) {
		l(72, dirty|compressionType|extendedL2)
		l(80, 1)
		l(88, 1)
		s(100, 112)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(testFile); err != nil {
		t.Error(err)
	}
}

// Images that the real qemu-img made are read as it means them.
func TestImagesOfQEMU(t *testing.T) {
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("qemu-img is not installed")
	}
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		size string
		want string // part of the refusal; empty: none
	}{
		"plain":        {nil, "3G", ""},
		"version 2":    {[]string{"-o", "compat=0.10"}, "3G", ""},
		"small":        {[]string{"-o", "cluster_size=512"}, "512", ""},
		"big clusters": {[]string{"-o", "cluster_size=2M,extended_l2=on"}, "3G", ""},
		"zstd":         {[]string{"-o", "compression_type=zstd"}, "3G", ""},
		"lazy":         {[]string{"-o", "lazy_refcounts=on,preallocation=metadata"}, "1G", ""},
		"backing":      {[]string{"-b", filepath.Join(dir, "plain"), "-F", "qcow2"}, "3G", "backing file"},
		"data file":    {[]string{"-o", "data_file=" + filepath.Join(dir, "data")}, "1G", "external data file"},
	} {
		if name == "backing" {
			run(t, tool, "create", "-q", "-f", "qcow2", filepath.Join(dir, "plain"), "3G")
		}
		path := filepath.Join(dir, name)
		run(t, tool, append(append([]string{"create", "-q", "-f", "qcow2"}, tc.args...), path, tc.size)...)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Parse(data)
		if err == nil {
			err = h.Check(int64(len(data)))
		}
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if want := map[string]int64{"3G": 3 << 30, "1G": 1 << 30, "512": 512}[tc.size]; h.Size != want {
			t.Errorf("%s: a disk of %d bytes, want %d", name, h.Size, want)
		}
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// Whatever stands there: the reader says yes or no, and what it takes is within its bounds.
func FuzzParse(f *testing.F) {
	f.Add(header(2, nil), int64(testFile))
	f.Add(header(3, nil), int64(testFile))
	f.Add(header(3, func(s set32, l set64) { l(40, 1<<64-1<<16); s(36, 1<<32-1) }), int64(1)<<62)
	f.Add([]byte("QFI\xfb"), int64(-1))
	f.Fuzz(func(t *testing.T, begin []byte, file int64) {
		h, err := Parse(begin)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if h.Size < 0 || h.Size > MaxSize || h.ClusterSize < 512 || h.ClusterSize > 2<<20 {
			t.Fatalf("read %+v", h)
		}
		err = h.Check(file)
		switch {
		case err == nil && (h.Backing || h.DataFile || h.Encrypted || h.Corrupt || h.Unknown || h.Snapshots > 0 || h.Size == 0):
			t.Fatalf("took %+v", h)
		case err == nil && file < h.ClusterSize:
			t.Fatalf("took a file of %d bytes with %+v", file, h)
		case err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnfit):
			t.Fatalf("refused with %v", err)
		}
	})
}
