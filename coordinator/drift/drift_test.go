package drift

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/shared/domxml"
	"berth/shared/units"
)

// nothing is an estate without records.
type nothing struct{ estate.Source }

func (nothing) Resource(string) (model.Resource, bool) { return model.Resource{}, false }

const uuid = "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0002"

func plain() model.VM {
	return model.VM{ID: uuid, Name: "web", Spec: model.VMSpec{
		Memory: units.GiB, VCPUs: 1, Networks: []string{"default", "bridge:br0"},
		Disks: []model.Disk{
			{Path: "/srv/root.qcow2", Format: "qcow2", Bus: "virtio"},
			{Pool: "fast", Volume: "data", Format: "raw", Bus: "virtio"},
			{Path: "/srv/cd.iso", Format: "raw", Bus: "sata", ReadOnly: true},
		},
	}}
}

// described is a VM that has its devices in XML of its own.
func described(devices string) model.VM {
	return model.VM{ID: uuid, Name: "web", Spec: model.VMSpec{
		Memory: units.GiB, VCPUs: 1,
		XML: "<domain type='kvm'><name>web</name><memory>1048576</memory><vcpu>1</vcpu><devices>" + devices + "</devices></domain>",
	}}
}

func baseline(t *testing.T, vm model.VM) []domxml.Device {
	t.Helper()
	devices, err := Baseline(nothing{}, &vm)
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func disk(key, path string) model.Device {
	return model.Device{Kind: "disk", Key: key, Source: model.DiskSource{Path: path}}
}

func volume(key, pool, name string) model.Device {
	return model.Device{Kind: "disk", Key: key, Source: model.DiskSource{Pool: pool, Volume: name}}
}

// asRendered is what a guest shows that runs as its record says.
func asRendered(t *testing.T, vm model.VM) (live []model.Device) {
	for _, one := range baseline(t, vm) {
		live = append(live, model.Device{
			Kind: string(one.Kind), Key: one.Key, Source: model.DiskSource(one.Source), Format: one.Format, Network: one.Network, Media: one.Media,
		})
	}
	return live
}

// asStarted is what a VM was started with that has the record of now.
func asStarted(t *testing.T, vm model.VM) (ran []model.RanDevice) {
	for _, one := range asRendered(t, vm) {
		ran = append(ran, model.RanDevice{Kind: one.Kind, Key: one.Key, Source: one.Source, Network: one.Network, Media: one.Media})
	}
	return ran
}

func compare(t *testing.T, vm model.VM, live []model.Device, facts model.NodeFacts) string {
	t.Helper()
	edits := Compare(&vm, baseline(t, vm), live, &facts)
	var texts []string
	for _, edit := range edits {
		texts = append(texts, fmt.Sprintf("%s: %s -> %s", edit.Key, edit.Was, edit.Is))
	}
	return strings.Join(texts, "; ")
}

func TestWhatDiffersFromTheRecord(t *testing.T) {
	pools := model.NodeFacts{Pools: []model.PoolFacts{{Name: "fast", Path: "/var/lib/fast"}}}
	for _, tc := range []struct {
		name   string
		change func(live []model.Device) []model.Device
		facts  model.NodeFacts
		want   string
	}{
		{name: "nothing", change: func(live []model.Device) []model.Device { return live }},
		{name: "a snapshot", want: "vda: /srv/root.qcow2 -> /srv/root.snap", change: func(live []model.Device) []model.Device {
			live[0].Source.Path = "/srv/root.snap"
			return live
		}},
		{name: "a volume by its file, as a migration names it", facts: pools, change: func(live []model.Device) []model.Device {
			live[1].Source = model.DiskSource{Path: "/var/lib/fast/data"}
			return live
		}},
		{name: "a volume by its file, where the pool is not told", change: func(live []model.Device) []model.Device {
			live[1].Source = model.DiskSource{Path: "/var/lib/fast/data"}
			return live
		}},
		{name: "a file of a volume's name", facts: pools, want: "vdb: fast/data -> /mnt/data", change: func(live []model.Device) []model.Device {
			live[1].Source = model.DiskSource{Path: "/mnt/data"}
			return live
		}},
		{name: "another volume", want: "vdb: fast/data -> fast/data2", change: func(live []model.Device) []model.Device {
			live[1].Source.Volume = "data2"
			return live
		}},
		{name: "a volume of its name in another pool", facts: pools, want: "vdb: fast/data -> slow/data", change: func(
			live []model.Device,
		) []model.Device {
			live[1].Source.Pool = "slow"
			return live
		}},
		{name: "another volume, by its file", facts: pools, want: "vdb: fast/data -> /var/lib/fast/data2", change: func(
			live []model.Device,
		) []model.Device {
			live[1].Source = model.DiskSource{Path: "/var/lib/fast/data2"}
			return live
		}},
		{name: "a snapshot of a volume, where the pool is not told", want: "vdb: fast/data -> /var/lib/fast/data.snap", change: func(
			live []model.Device,
		) []model.Device {
			live[1].Source = model.DiskSource{Path: "/var/lib/fast/data.snap"}
			return live
		}},
		{name: "a volume for a file", want: "vda: /srv/root.qcow2 -> fast/root", change: func(live []model.Device) []model.Device {
			live[0].Source = model.DiskSource{Pool: "fast", Volume: "root"}
			return live
		}},
		{name: "a disk more", want: "vdc:  -> /srv/more", change: func(live []model.Device) []model.Device {
			return append(live, disk("vdc", "/srv/more"))
		}},
		{name: "a disk less", want: "vdb: fast/data -> ", change: func(live []model.Device) []model.Device {
			return append(live[:1:1], live[2:]...)
		}},
		{name: "an empty drive", want: "sda: /srv/cd.iso -> empty", change: func(live []model.Device) []model.Device {
			live[2].Source = model.DiskSource{}
			return live
		}},
		{name: "another network", want: ": default -> other", change: func(live []model.Device) []model.Device {
			live[3].Network = "other"
			return live
		}},
		{name: "the seed of cloud-init", change: func(live []model.Device) []model.Device {
			return append(live, volume("vdc", "fast", model.VolumeName(model.SeedID(uuid), "raw")))
		}},
	} {
		vm := plain()
		vm.Ran = asStarted(t, vm)
		got := compare(t, vm, tc.change(asRendered(t, plain())), tc.facts)
		if tc.want == "" && got != "" || !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Without an address in its document an interface gets another one at each start.
func TestInterfacesWithoutAddressesAreNotCompared(t *testing.T) {
	vm := described("<disk type='file'><source file='/srv/a'/><target dev='vda'/></disk>" +
		"<interface type='network'><source network='lan'/></interface>")
	live := []model.Device{disk("vda", "/srv/b"), {Kind: "interface", Key: "52:54:00:12:34:56", Network: "lan"}}
	if got := compare(t, vm, live, model.NodeFacts{}); got != "vda: /srv/a -> /srv/b" {
		t.Error(got)
	}
}

// A disk that comes over a network is known by its protocol and name. A volume of a pool that is one by itself has two names.
func TestDisksOverANetwork(t *testing.T) {
	vm := described("<disk type='network'><source protocol='rbd' name='vms/web'><host name='mon1'/></source><target dev='vda'/></disk>" +
		"<disk type='volume'><source pool='ceph' volume='data'/><target dev='vdb'/></disk>")
	over := func(target, network string) model.Device {
		return model.Device{Kind: "disk", Key: target, Network: network}
	}
	for want, live := range map[string][]model.Device{
		"":                                  {over("vda", "rbd:vms/web"), over("vdb", "rbd:vms/data")},
		"vda: rbd:vms/web -> rbd:vms/old":   {over("vda", "rbd:vms/old"), volume("vdb", "ceph", "data")},
		"vda: rbd:vms/web -> /srv/web":      {disk("vda", "/srv/web"), volume("vdb", "ceph", "data")},
		"vdb: ceph/data -> rbd:vms/another": {over("vda", "rbd:vms/web"), over("vdb", "rbd:vms/another")},
	} {
		if got := compare(t, vm, live, model.NodeFacts{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	told := over("vda", "rbd:vms/old")
	told.XML = "<disk type='network' device='disk'><source protocol='rbd' name='vms/old'><host name='mon1'/></source>" +
		"<target dev='vda'/></disk>"
	for _, one := range []struct {
		device model.Device
		kept   bool
	}{{told, true}, {over("vda", "rbd:vms/old"), false}} {
		edits := Compare(&vm, baseline(t, vm), []model.Device{one.device, volume("vdb", "ceph", "data")}, &model.NodeFacts{})
		if len(edits) != 1 || strings.Contains(edits[0].XML, "mon1") != one.kept {
			t.Errorf("it is started with %+v", edits)
		}
	}
}

// What is not known of an element is that of the device whose place it takes.
func TestElementsOfWhatNobodyAskedFor(t *testing.T) {
	vm := described("<disk type='file' device='disk'><driver name='qemu' type='raw' io='native'/><source file='/srv/a'/>" +
		"<target dev='sda' bus='scsi'/></disk>")
	live := []model.Device{
		disk("sda", "/srv/a.snap"), disk("vdb", "/dev/vg/more"), {Kind: "interface", Key: "52:54:00:12:34:56", Network: "bridge:br7"},
	}
	live[0].Format = "qcow2"
	edits := Compare(&vm, baseline(t, vm), live, &model.NodeFacts{})
	if len(edits) != 3 {
		t.Fatal(edits)
	}
	for at, words := range [][]string{
		{`io="native"`, `type="qcow2"`, `bus="scsi"`, "/srv/a.snap"},
		{`type="block"`, `dev="/dev/vg/more"`, `dev="vdb"`},
		{`bridge="br7"`, "virtio"},
	} {
		for _, word := range words {
			if !strings.Contains(edits[at].XML, word) {
				t.Errorf("%s has no %s: %s", edits[at].Key, word, edits[at].XML)
			}
		}
	}
	vm.Drift = &model.Drift{Edits: edits}
	accepted, err := Accepted(vm)
	if err != nil || accepted.Drift != nil {
		t.Fatal(accepted.Drift, err)
	}
	if got := compare(t, accepted, live, model.NodeFacts{}); got != "" {
		t.Errorf("what was accepted differs: %s", got)
	}
	without := slices.DeleteFunc(slices.Clone(live), func(d model.Device) bool { return d.Key == "vdb" })
	if got := compare(t, accepted, without, model.NodeFacts{}); !strings.Contains(got, "vdb") {
		t.Errorf("started without what was accepted it differs: %q", got)
	}
}

// What Berth has no element for would be taken out of the document: the next start would have no such disk.
func TestWhatCannotBeStartedIsNotAccepted(t *testing.T) {
	vm := described("<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/a'/>" +
		"<target dev='vda' bus='virtio'/></disk>")
	vm.Drift = &model.Drift{Edits: []model.DeviceEdit{{Kind: "disk", Key: "vda", Was: "/srv/a", Is: "/srv/b"}}}
	after, err := Accepted(vm)
	if !errors.Is(err, ErrNotStartable) || after.Spec.XML != vm.Spec.XML || after.Drift == nil {
		t.Errorf("it is %v, %v", after.Spec.XML, err)
	}
}

// A snapshot is accepted, and another one taken while the VM runs on: that was changed from the first one, as the record has it.
func TestWhatIsChangedAfterItWasAcceptedIsStarted(t *testing.T) {
	vm := described("<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/a'/>" +
		"<target dev='vda' bus='virtio'/></disk>")
	vm.Ran = []model.RanDevice{{Kind: "disk", Key: "vda", Source: model.DiskSource{Path: "/srv/a"}}}
	for _, file := range []string{"/srv/a.first", "/srv/a.second", "/srv/a.third"} {
		after, _ := After(vm, Compare(&vm, baseline(t, vm), []model.Device{disk("vda", file)}, &model.NodeFacts{}), "n1", time.Time{})
		if len(after.Edits()) != 1 || after.Edits()[0].Source.Path != file {
			t.Fatalf("it runs with %s, and its record has %+v", file, after.Drift)
		}
		if why := Conflict(&after, baseline(t, after)); why != "" {
			t.Errorf("it runs with %s, and is not started: %s", file, why)
		}
		var err error
		if vm, err = Accepted(after); err != nil || vm.Drift != nil || !strings.Contains(vm.Spec.XML, file) {
			t.Fatalf("%s is accepted: %s, %v", file, vm.Spec.XML, err)
		}
	}
	if len(vm.Ran) != 1 || vm.Ran[0].Source.Path != "/srv/a.third" {
		t.Errorf("it is said to run with %+v", vm.Ran)
	}
}

// A VM that has changed more than its record keeps is not started without what is left out.
func TestTooMuchKeepsAVMFromStarting(t *testing.T) {
	vm := plain()
	live := asRendered(t, vm)
	for i := range model.MaxDriftEdits + 1 {
		live = append(live, disk(fmt.Sprintf("sd%d", i), "/srv/"+strings.Repeat("x", 4000)))
	}
	edits := Compare(&vm, baseline(t, vm), live, &model.NodeFacts{})
	vm.Drift = &model.Drift{Edits: edits}
	if why := Conflict(&vm, baseline(t, vm)); len(edits) != model.MaxDriftEdits || why == "" {
		t.Errorf("%d edits are kept, and it is started", len(edits))
	}
}

// What people change in a record takes effect at the next start. The guest that runs is no drift because of that.
func TestARecordThatWasChangedIsNoDrift(t *testing.T) {
	vm := plain()
	vm.Ran = asStarted(t, vm)
	live := asRendered(t, vm)
	vm.Spec.Disks[0].Path = "/srv/restored.qcow2"
	vm.Spec.Disks = append(vm.Spec.Disks, model.Disk{Path: "/srv/new", Format: "raw", Bus: "virtio"})
	vm.Spec.Networks = []string{"other"}
	if got := compare(t, vm, live, model.NodeFacts{}); got != "" {
		t.Error(got)
	}
	live[0].Source.Path = "/srv/root.snap" // and somebody takes a snapshot
	if got := compare(t, vm, live, model.NodeFacts{}); got != "vda: /srv/root.qcow2 -> /srv/root.snap" {
		t.Error(got)
	}
	facts := model.NodeFacts{}
	vm.Drift = &model.Drift{Edits: Compare(&vm, baseline(t, vm), live, &facts)}
	if why := Conflict(&vm, baseline(t, vm)); !strings.Contains(why, "/srv/restored.qcow2") {
		t.Errorf("nobody is asked which of the two disks it is to be: %q", why)
	}
	vm.Ran = nil // its agent was of an older release when it was started
	if got := compare(t, vm, live, model.NodeFacts{}); !strings.Contains(got, "-> /srv/root.snap") || strings.Contains(got, "vdc") {
		t.Errorf("without knowing what it was started with: %q", got)
	}
}

// The element comes from a node, and other nodes start it.
func TestAnElementThatIsNotWhatItSays(t *testing.T) {
	vm := plain()
	for name, one := range map[string]model.Device{
		"another file": {
			Kind: "disk", Key: "vdc", Source: model.DiskSource{Path: "/srv/more"},
			XML: `<disk type="block"><source dev="/dev/sda"/><target dev="vdc"/></disk>`,
		},
		"nothing to start with": {
			Kind: "interface", Key: "52:54:00:12:34:56",
			XML: `<interface type="ethernet"><mac address="52:54:00:12:34:56"/><script path="/tmp/x"/></interface>`,
		},
	} {
		edits := Compare(&vm, baseline(t, vm), append(asRendered(t, vm), one), &model.NodeFacts{})
		if len(edits) != 1 || strings.Contains(edits[0].XML, "/dev/sda") || strings.Contains(edits[0].XML, "script") {
			t.Errorf("%s: %+v", name, edits)
		}
		vm.Drift = &model.Drift{Edits: edits}
		if why := Conflict(&vm, baseline(t, vm)); (why != "") != (one.Kind == "interface") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// Where the node does not tell of its pools, what was seen before stays.
func TestADriftStaysWhileThePoolIsNotTold(t *testing.T) {
	vm := plain()
	vm.Ran = asStarted(t, vm)
	live := asRendered(t, vm)
	live[1].Source = model.DiskSource{Path: "/mnt/data"}
	pools := model.NodeFacts{Pools: []model.PoolFacts{{Name: "fast", Path: "/var/lib/fast"}}}
	vm.Drift = &model.Drift{Edits: Compare(&vm, baseline(t, vm), live, &pools)}
	if got := compare(t, vm, live, model.NodeFacts{}); got != "vdb: fast/data -> /mnt/data" {
		t.Errorf("it becomes %q", got)
	}
}

func TestAfter(t *testing.T) {
	vm, noon := plain(), time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	one := []model.DeviceEdit{{Kind: "disk", Key: "vda", Was: "/a", Is: "/b", XML: "<disk/>"}}
	vm, news := After(vm, one, "n1", noon)
	if !news || vm.Drift.Since != noon {
		t.Fatalf("%t, %+v", news, vm.Drift)
	}
	vm.Drift.Accepted = true
	one = []model.DeviceEdit{{Kind: "disk", Key: "vda", Was: "/a", Is: "/b", XML: "<disk></disk>"}}
	if _, news = After(vm, one, "n1", noon.Add(time.Hour)); news {
		t.Error("the same change is news")
	}
	vm, news = After(vm, one, "n2", noon.Add(time.Hour))
	if !news || vm.Drift.Since != noon || !vm.Drift.Accepted || vm.Drift.Node != "n2" {
		t.Errorf("on another node: %t, %+v", news, vm.Drift)
	}
	one = []model.DeviceEdit{{Kind: "disk", Key: "vda", Was: "/a", Is: "/c"}}
	vm, news = After(vm, one, "n2", noon.Add(2*time.Hour))
	if !news || vm.Drift.Accepted || vm.Drift.Since.Equal(noon) {
		t.Errorf("another change: %t, %+v", news, vm.Drift)
	}
	reverted := Reverted(vm)
	if len(reverted.Edits()) != 0 || len(reverted.Drifted()) != 1 || vm.Drift.Reverted {
		t.Errorf("reverted it has %+v, before it had %+v", reverted.Drift, vm.Drift)
	}
	if _, news = After(reverted, one, "n2", noon.Add(3*time.Hour)); news {
		t.Error("what was reverted is news while it runs on")
	}
	if after, news := After(vm, nil, "n2", noon); !news || after.Drift != nil {
		t.Errorf("as its record has it: %t, %+v", news, after.Drift)
	}
}

func TestConflict(t *testing.T) {
	edit := func(was, is string) model.VM {
		vm := plain()
		vm.Drift = &model.Drift{Edits: []model.DeviceEdit{{Kind: "disk", Key: "vda", Was: was, Is: is, XML: "<disk/>"}}}
		return vm
	}
	for _, tc := range []struct {
		vm    model.VM
		wrong bool
	}{
		{edit("/srv/root.qcow2", "/srv/root.snap"), false},
		{edit("/srv/older.qcow2", "/srv/root.snap"), true},
		{edit("", "/srv/attached"), true}, // the record has a disk of that name by now
		{edit("/srv/root.qcow2", ""), false},
	} {
		if why := Conflict(&tc.vm, baseline(t, tc.vm)); (why != "") != tc.wrong {
			t.Errorf("%+v: %q", tc.vm.Drift.Edits, why)
		}
	}
	drive := edit("/srv/older.iso", "empty")
	drive.Drift.Edits[0].Media = true
	if why := Conflict(&drive, baseline(t, drive)); why != "" {
		t.Error("there is another medium in its record: ", why)
	}
	gone := edit("/srv/attached", "")
	gone.Drift.Edits[0].Key = "vdz"
	if why := Conflict(&gone, baseline(t, gone)); why != "" {
		t.Error("it was detached, and the record has it no more: ", why)
	}
}
