package drift

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

func guest(t *testing.T, vm *model.VM, live []model.Device) *Guest {
	return &Guest{VM: vm, Baseline: baseline(t, *vm), Live: live}
}

// A device that is attached gets the first name that is free: of what runs, of what was started, and of what the next start has.
func TestAttachedDevicesGetFreeNames(t *testing.T) {
	vm := plain()
	live := asRendered(t, vm)
	edit, err := guest(t, &vm, live).AttachDisk(model.Disk{Pool: "fast", Volume: "more", Format: "qcow2", Bus: "virtio"})
	if err != nil || edit.Key != "vdc" || edit.Is != "fast/more" || edit.Was != "" || !strings.Contains(edit.XML, `dev="vdc"`) {
		t.Errorf("%+v, %v", edit, err)
	}
	vm.Ran = []model.RanDevice{{Kind: "disk", Key: "vdc"}}
	vm.Amend([]model.DeviceEdit{{Kind: "disk", Key: "vdd", Is: "/srv/d"}}, "n1", time.Time{})
	edit, err = guest(t, &vm, append(live, disk("vde", "/srv/e"))).AttachDisk(model.Disk{Path: "/srv/f", Format: "raw"})
	if err != nil || edit.Key != "vdf" || edit.Source.Path != "/srv/f" {
		t.Errorf("%+v, %v", edit, err)
	}
	first, err := guest(t, &vm, live).AttachInterface("bridge:br1")
	if err != nil || first.Is != "bridge:br1" || !strings.HasPrefix(first.Key, "52:54:00:") {
		t.Fatalf("%+v, %v", first, err)
	}
	vm.Amend([]model.DeviceEdit{first}, "n1", time.Time{})
	if second, err := guest(t, &vm, live).AttachInterface("default"); err != nil || second.Key == first.Key {
		t.Errorf("%+v after %+v, %v", second, first, err)
	}
	if _, err := guest(t, &vm, live).AttachDisk(model.Disk{Path: "relative", Format: "raw"}); !errors.Is(err, domxml.ErrSpec) {
		t.Errorf("a path that is not absolute: %v", err)
	}
}

func TestDetachAndMediaNameWhatIsThere(t *testing.T) {
	vm := plain()
	edit, err := guest(t, &vm, nil).Detach(domxml.DiskDevice, "vdb")
	if err != nil || edit.Was != "fast/data" || edit.Is != "" || edit.XML != "" {
		t.Errorf("%+v, %v", edit, err)
	}
	var none *NotThereError
	_, err = guest(t, &vm, nil).Detach(domxml.DiskDevice, "vdz")
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "vdb (fast/data)") {
		t.Errorf("a disk that it has not: %v", err)
	}
	edit, err = guest(t, &vm, nil).Medium("", model.DiskSource{Path: "/srv/other.iso"})
	if err != nil || edit.Key != "sda" || edit.Was != "/srv/cd.iso" || edit.Is != "/srv/other.iso" || !edit.Media {
		t.Errorf("%+v, %v", edit, err)
	}
	made, err := domxml.Devices("<domain><devices>" + edit.XML + "</devices></domain>")
	if err != nil || len(made) != 1 || !made[0].Media || made[0].Key != "sda" || made[0].Source.Path != "/srv/other.iso" {
		t.Errorf("its element is %s, %v", edit.XML, err)
	}
	edit, err = guest(t, &vm, nil).Medium("sda", model.DiskSource{})
	if err != nil || edit.Is != "empty" || strings.Contains(edit.XML, "source") {
		t.Errorf("ejected: %+v, %v", edit, err)
	}
	if _, err := guest(t, &vm, nil).Medium("vda", model.DiskSource{}); !errors.As(err, &none) || err.Error() != "it has sda (/srv/cd.iso)" {
		t.Errorf("a disk is no drive: %v", err)
	}
}

// What Berth has changed is seen in the guest, and stays the change of who has asked for it. What is not seen there is none any more, and
// what somebody changes beside it later is nobody's.
// A node shows a change some seconds after it was made. What somebody has just attached can be detached, and what was just detached is
// gone. What somebody has changed beside Berth is as the node shows it.
func TestWhatWasJustChangedCountsBeforeItsNodeShowsIt(t *testing.T) {
	vm := plain()
	before := asRendered(t, vm)
	vm.Amend([]model.DeviceEdit{
		{Kind: "disk", Key: "vdd", Is: "/srv/d", Source: model.DiskSource{Path: "/srv/d"}, By: "operator"},
		{Kind: "disk", Key: "vdb", Was: "fast/data", By: "operator"},
		{Kind: "disk", Key: "vde", Is: "/srv/e"},
	}, "n1", time.Time{})
	edit, err := guest(t, &vm, before).Detach(domxml.DiskDevice, "vdd")
	if err != nil || edit.Was != "/srv/d" || edit.Is != "" {
		t.Errorf("%+v, %v", edit, err)
	}
	for _, key := range []string{"vdb", "vde"} {
		if edit, err := guest(t, &vm, before).Detach(domxml.DiskDevice, key); err == nil {
			t.Errorf("%s is not there, and detaching it is %+v", key, edit)
		}
	}
}

func TestAChangeWithBerthKeepsWhoHasMadeIt(t *testing.T) {
	vm := plain()
	vm.Ran = asStarted(t, vm)
	live := asRendered(t, vm)
	g := guest(t, &vm, live)
	attached, err := g.AttachDisk(model.Disk{Pool: "fast", Volume: "more", Format: "qcow2"})
	if err != nil {
		t.Fatal(err)
	}
	detached, err := g.Detach(domxml.DiskDevice, "vdb")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, edit := range []*model.DeviceEdit{&attached, &detached} {
		edit.By, edit.At = "operator/alice", noon
	}
	vm.Amend([]model.DeviceEdit{attached, detached}, "n1", noon)
	is := append([]model.Device{live[0]}, live[2:]...)
	is = append(is, volume("vdc", "fast", "more"))
	facts := &model.NodeFacts{}
	seen := func(live []model.Device) (model.VM, bool) {
		return After(vm, Compare(&vm, baseline(t, vm), live, facts), "n1", noon.Add(time.Hour))
	}
	if after, news := seen(is); news || len(after.Drifted()) != 2 || len(after.ChangedBeside()) != 0 {
		t.Errorf("as it was changed: news %t, %+v", news, after.Drift)
	}
	if after, _ := seen(append(is, disk("vdd", "/srv/by-hand"))); len(after.Drifted()) != 3 || len(after.ChangedBeside()) != 1 ||
		after.ChangedBeside()[0].Key != "vdd" {
		t.Errorf("with another beside it: %+v", after.Drift)
	}
	if texts := Events(&model.VM{Spec: vm.Spec}, &vm, noon, "berth"); len(texts) != 0 {
		t.Errorf("it is told as a change beside Berth: %+v", texts)
	}
	vm.Amend([]model.DeviceEdit{{Kind: "disk", Key: "VDC", Was: "fast/more"}, {Kind: "disk", Key: "vdb", Is: "fast/data"}}, "n1", noon)
	if vm.Drift != nil {
		t.Errorf("all is taken back: %+v", vm.Drift)
	}
}
