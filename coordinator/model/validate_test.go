package model

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"berth/shared/units"
)

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "0", "web-1", "Web.example_com", strings.Repeat("x", 64)} {
		if err := ValidateName("VM", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", strings.Repeat("x", 65), "6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d",
	} {
		err := ValidateName("VM", bad)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !errors.Is(err, ErrInvalid) || invalid.Field != "VM name" {
			t.Errorf("%q: %v, want an InvalidError about the VM name", bad, err)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, good := range []NodeSettings{
		{},
		{RAMRatio: new(0.1), CPURatio: new(64.0), Overhead: new(units.Bytes(0))},
		{RAMRatio: new(16.0), CPURatio: new(0.1), Overhead: new(units.TiB)},
	} {
		if err := ValidateSettings(good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]NodeSettings{
		"ram_ratio 150 is not valid: want 0.1 to 16":        {RAMRatio: new(150.0)},
		"ram_ratio NaN is not valid: want 0.1 to 16":        {RAMRatio: new(math.NaN())},
		"cpu_ratio 0 is not valid: want 0.1 to 64":          {CPURatio: new(0.0)},
		"cpu_ratio +Inf is not valid: want 0.1 to 64":       {CPURatio: new(math.Inf(1))},
		"overhead -1 B is not valid: want 0 to 1 TiB":       {Overhead: new(units.Bytes(-1))},
		"overhead 2 TiB is not valid: want 0 to 1 TiB":      {Overhead: new(2 * units.TiB)},
		"ram_ratio 0.09999 is not valid: want 0.1 to 16":    {RAMRatio: new(0.09999)},
		"cpu_ratio -Inf is not valid: want 0.1 to 64":       {CPURatio: new(math.Inf(-1))},
		"ram_ratio 1e+300 is not valid: want 0.1 to 16":     {RAMRatio: new(1e300)},
		"overhead 1024.5 TiB is not valid: want 0 to 1 TiB": {Overhead: new(1024*units.TiB + units.TiB/2)},
	} {
		if err := ValidateSettings(bad); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSpecs(t *testing.T) {
	good := func() VMSpec {
		return VMSpec{
			Memory: 512 * units.MiB, VCPUs: 2, Kernel: "/boot/k", Initrd: "/boot/i", Cmdline: "console=ttyS0",
			Disks:    []Disk{{Path: "/d/1", Format: "qcow2", Bus: "virtio"}, {Path: "/d/2", Format: "raw", Bus: "scsi"}},
			Networks: []string{"default", "bridge:br0"},
		}
	}
	for name, spec := range map[string]VMSpec{
		"all fields":   good(),
		"only a size":  {Memory: MinVMMemory, VCPUs: 1},
		"the largest":  {Memory: MaxVMMemory, VCPUs: MaxVCPUs},
		"XML by hand":  {Memory: units.GiB, VCPUs: 1, XML: "<domain/>"},
		"the same net": {Memory: units.GiB, VCPUs: 1, Networks: []string{"default", "default"}},
	} {
		if err := ValidateSpec(spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := make([]Disk, MaxDisks+1)
	for want, change := range map[string]func(*VMSpec){
		"memory -1 B is not valid: want 1 MiB to 24 TiB":         func(s *VMSpec) { s.Memory = -1 },
		"memory 25 TiB is not valid: want 1 MiB to 24 TiB":       func(s *VMSpec) { s.Memory = 25 * units.TiB },
		"vcpus 0 is not valid: want 1 to 4096":                   func(s *VMSpec) { s.VCPUs = 0 },
		"vcpus 5000 is not valid: want 1 to 4096":                func(s *VMSpec) { s.VCPUs = 5000 },
		`kernel "boot/k" is not valid: want an absolute`:         func(s *VMSpec) { s.Kernel = "boot/k" },
		`initrd "/i\x00" is not valid: want an absolute`:         func(s *VMSpec) { s.Initrd = "/i\x00" },
		`kernel "" is not valid: want a kernel, because`:         func(s *VMSpec) { s.Kernel = "" },
		`cmdline "a\nb" is not valid: want at most 4096`:         func(s *VMSpec) { s.Cmdline = "a\nb" },
		`disks[1].path "" is not valid: want an absolute`:        func(s *VMSpec) { s.Disks[1].Path = "" },
		`disks[1].format "" is not valid: want raw or`:           func(s *VMSpec) { s.Disks[1].Format = "" },
		`disks[0].bus "ide" is not valid: want virtio`:           func(s *VMSpec) { s.Disks[0].Bus = "ide" },
		`disks[1].path "/d/./1" is not valid: want another`:      func(s *VMSpec) { s.Disks[1].Path = "/d/./1" },
		"disks 65 is not valid: want at most 64":                 func(s *VMSpec) { s.Disks = many },
		`networks[0] "" is not valid: want a libvirt`:            func(s *VMSpec) { s.Networks[0] = "" },
		`networks[1] "bridge:" is not valid: want a`:             func(s *VMSpec) { s.Networks[1] = "bridge:" },
		"kernel together with xml is not valid: want one or the": func(s *VMSpec) { s.XML = "<domain/>" },
		"xml of 262145 bytes is not valid: want at most 26":      func(s *VMSpec) { s.XML = strings.Repeat("x", MaxXMLLength+1) },
	} {
		spec := good()
		change(&spec)
		err := ValidateSpec(spec)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestIDsSortByTimeAndAreReadable(t *testing.T) {
	if got := NewID(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), 0); got != "0000000000000" {
		t.Errorf("the first ID is %s", got)
	}
	if got := NewID(time.Date(2026, time.March, 1, 12, 0, 0, 5_000_000, time.UTC), math.MaxUint64); got != "1zkf65g5zzzzz" {
		t.Errorf("got %s, want 1zkf65g5zzzzz", got)
	}
	if before := NewID(time.Unix(0, 0), 7); before[:8] != "00000000" {
		t.Errorf("an ID from before the epoch is %s", before)
	}
	start, last := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC), ""
	for i := range 2000 {
		id := NewID(start.Add(time.Duration(i)*time.Millisecond), uint64(i)*0x9e3779b97f4a7c15)
		if id <= last || strings.Trim(id, idAlphabet) != "" {
			t.Fatalf("ID %s after %s", id, last)
		}
		last = id
	}
}
