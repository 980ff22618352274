package cluster

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
		{RAMRatio: ptr(0.1), CPURatio: ptr(64.0), Overhead: ptr(units.Bytes(0))},
		{RAMRatio: ptr(16.0), CPURatio: ptr(0.1), Overhead: ptr(units.TiB)},
	} {
		if err := ValidateSettings(good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]NodeSettings{
		"ram_ratio 150 is not valid: want 0.1 to 16":        {RAMRatio: ptr(150.0)},
		"ram_ratio NaN is not valid: want 0.1 to 16":        {RAMRatio: ptr(math.NaN())},
		"cpu_ratio 0 is not valid: want 0.1 to 64":          {CPURatio: ptr(0.0)},
		"cpu_ratio +Inf is not valid: want 0.1 to 64":       {CPURatio: ptr(math.Inf(1))},
		"overhead -1 B is not valid: want 0 to 1 TiB":       {Overhead: ptr(units.Bytes(-1))},
		"overhead 2 TiB is not valid: want 0 to 1 TiB":      {Overhead: ptr(2 * units.TiB)},
		"ram_ratio 0.09999 is not valid: want 0.1 to 16":    {RAMRatio: ptr(0.09999)},
		"cpu_ratio -Inf is not valid: want 0.1 to 64":       {CPURatio: ptr(math.Inf(-1))},
		"ram_ratio 1e+300 is not valid: want 0.1 to 16":     {RAMRatio: ptr(1e300)},
		"overhead 1024.5 TiB is not valid: want 0 to 1 TiB": {Overhead: ptr(1024*units.TiB + units.TiB/2)},
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
		"memory -1 B is not valid: want 1 MiB to 24 TiB":    func(s *VMSpec) { s.Memory = -1 },
		"memory 25 TiB is not valid: want 1 MiB to 24 TiB":  func(s *VMSpec) { s.Memory = 25 * units.TiB },
		"vcpus 0 is not valid: want 1 to 4096":              func(s *VMSpec) { s.VCPUs = 0 },
		"vcpus 5000 is not valid: want 1 to 4096":           func(s *VMSpec) { s.VCPUs = 5000 },
		`kernel "boot/k" is not valid: want an absolute`:    func(s *VMSpec) { s.Kernel = "boot/k" },
		`initrd "/i\x00" is not valid: want an absolute`:    func(s *VMSpec) { s.Initrd = "/i\x00" },
		`kernel "" is not valid: want a kernel beside`:      func(s *VMSpec) { s.Kernel = "" },
		`cmdline "a\nb" is not valid: want at most 4096`:    func(s *VMSpec) { s.Cmdline = "a\nb" },
		`disks[1].path "" is not valid: want an absolute`:   func(s *VMSpec) { s.Disks[1].Path = "" },
		`disks[1].format "" is not valid: want raw or`:      func(s *VMSpec) { s.Disks[1].Format = "" },
		`disks[0].bus "ide" is not valid: want virtio`:      func(s *VMSpec) { s.Disks[0].Bus = "ide" },
		`disks[1].path "/d/./1" is not valid: want another`: func(s *VMSpec) { s.Disks[1].Path = "/d/./1" },
		"disks 65 is not valid: want at most 64":            func(s *VMSpec) { s.Disks = many },
		`networks[0] "" is not valid: want a libvirt`:       func(s *VMSpec) { s.Networks[0] = "" },
		`networks[1] "bridge:" is not valid: want a`:        func(s *VMSpec) { s.Networks[1] = "bridge:" },
		"kernel beside xml is not valid: want one or the":   func(s *VMSpec) { s.XML = "<domain/>" },
		"xml of 262145 bytes is not valid: want at most 26": func(s *VMSpec) { s.XML = strings.Repeat("x", MaxXMLLength+1) },
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
	last := ""
	for i := range 2000 {
		id := NewID(noon.Add(time.Duration(i)*time.Millisecond), uint64(i)*0x9e3779b97f4a7c15)
		if id <= last || strings.Trim(id, idAlphabet) != "" {
			t.Fatalf("ID %s after %s", id, last)
		}
		last = id
	}
}

func TestRecordsThatContradictEachOtherAreFound(t *testing.T) {
	node := func(id, name string) Node { return Node{ID: id, Name: name} }
	vm := func(id, name, holder string) VM {
		v := held(id, holder, units.GiB, 1, noon)
		v.Name = name
		return v
	}
	if err := CheckRecords(
		[]Node{node("n1", "a"), node("n2", "b")},
		[]VM{vm("u1", "x", "n1"), vm("u2", "y", "")},
		[]Reservation{{Node: "n2", VM: "u1", Operation: "op"}},
	); err != nil {
		t.Errorf("records in order: %v", err)
	}
	broken := vm("u1", "x", "n1")
	broken.Epoch, broken.Desired, broken.Spec.VCPUs = 0, "", 0
	keyed := vm("u1", "x", "")
	keyed.Keys = []Key{{Class: SystemKey, Name: "_Silver", Weight: 1}}
	keyed.Sticky = []Key{{Class: CustomerKey, Name: SpecialRAM, Weight: 1}}
	with := func(v VM, disk string) VM {
		v.Disks = []string{disk}
		return v
	}
	for name, tc := range map[string]struct {
		nodes        []Node
		vms          []VM
		reservations []Reservation
		want         []string
	}{
		"twice": {
			nodes: []Node{node("n1", "a"), node("n1", "a")},
			vms:   []VM{vm("u1", "x", ""), vm("u1", "x", "")},
			want:  []string{"node ID n1 is there twice", "both called a", "VM ID u1 is there twice", "both called x"},
		},
		"dangling": {
			vms:          []VM{vm("u1", "x", "n9")},
			reservations: []Reservation{{Node: "n9", VM: "u9", Operation: "op"}},
			want: []string{
				"VM u1 is held by node n9, which does not exist", "op reserves on node n9", "op reserves for VM u9",
			},
		},
		"a bad record": {
			nodes: []Node{node("n1", "")}, vms: []VM{broken},
			want: []string{"node name", "vcpus 0", `wanted ""`, "without an epoch"},
		},
		"keys": {
			nodes: []Node{{ID: "n1", Name: "a", Keys: map[string]float64{"Premium": math.NaN()}}},
			vms:   []VM{keyed},
			want:  []string{"node n1: key Premium NaN", "VM u1: key _Silver as a system key", "VM u1: key #RAM as a customer key"},
		},
		"one disk": {
			vms: []VM{with(vm("u1", "x", ""), "d1"), with(vm("u2", "y", ""), "d1")}, want: []string{"u1 and u2 both have resource d1"},
		},
		"two operations": {
			nodes: []Node{node("n1", "a")}, vms: []VM{vm("u1", "x", "")},
			reservations: []Reservation{{Node: "n1", VM: "u1", Operation: "a"}, {Node: "n1", VM: "u1", Operation: "b"}},
			want:         []string{"operations a and b both reserve for VM u1"},
		},
	} {
		err := CheckRecords(tc.nodes, tc.vms, tc.reservations)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}
