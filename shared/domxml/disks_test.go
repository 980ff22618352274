package domxml

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// live is a part of what libvirt 9.0 shows of a running domain with a thin copy, a file, an empty drive and a block device.
const live = `<domain type='kvm' id='3'>
  <name>web-1</name>
  <uuid>` + uuid + `</uuid>
  <memory unit='KiB'>1048576</memory>
  <devices>
    <disk type='volume' device='disk' snapshot='no'>
      <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
      <source pool='local' volume='berth-0abc.qcow2' index='2'/>
      <backingStore type='file' index='3'>
        <format type='qcow2'/>
        <source file='/srv/base.qcow2'/>
        <backingStore/>
      </backingStore>
      <target dev='vda' bus='virtio'/>
      <serial>0abc</serial>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='/srv/a &amp; b.raw'/>
      <target dev='vdb' bus='virtio'/>
      <readonly/>
    </disk>
    <disk type='file' device='cdrom'>
      <target dev='sda' bus='sata'/>
      <readonly/>
    </disk>
    <disk type='block' device='disk'>
      <source dev='/dev/vg/c'/>
      <target dev='sdb' bus='scsi'/>
    </disk>
    <hostdev mode='subsystem'><source><address/></source></hostdev>
  </devices>
</domain>`

func TestDisks(t *testing.T) {
	got, err := Disks(live)
	if err != nil {
		t.Fatal(err)
	}
	want := []Attached{
		{Source{Pool: "local", Volume: "berth-0abc.qcow2"}, "vda", "qcow2", false},
		{Source{Path: "/srv/a & b.raw"}, "vdb", "raw", true},
		{Source{}, "sda", "", true},
		{Source{Path: "/dev/vg/c"}, "sdb", "", false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Disks("<domain"); !errors.Is(err, ErrInvalid) {
		t.Errorf("half a document: %v", err)
	}
}

func TestMoveDisks(t *testing.T) {
	got, err := MoveDisks(live, map[string]Source{
		"vda": {Pool: "fast", Volume: `a"b`}, "vdb": {Path: "/srv/<b>"}, "sdb": {Path: "/dev/vg/d"},
	})
	if err != nil {
		t.Fatal(err)
	}
	backing := live[strings.Index(live, "<backingStore type"):strings.Index(live, "<target dev='vda'")]
	want := strings.NewReplacer(
		"<disk type='volume' device='disk' snapshot='no'>", `<disk type="volume" device="disk" snapshot="no">`,
		"<source pool='local' volume='berth-0abc.qcow2' index='2'/>", `<source pool="fast" volume="a&#34;b"/><backingStore/>`,
		strings.TrimRight(backing, " \n"), "",
		"<disk type='file' device='disk'>", `<disk type="file" device="disk">`,
		"<source file='/srv/a &amp; b.raw'/>", `<source file="/srv/&lt;b&gt;"/><backingStore/>`,
		"<disk type='block' device='disk'>", `<disk type="block" device="disk">`,
		"<source dev='/dev/vg/c'/>", `<source dev="/dev/vg/d"/><backingStore/>`,
	).Replace(live)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if same, err := MoveDisks(live, nil); err != nil || same != live {
		t.Errorf("nothing to move, and it changed: %v", err)
	}
}

func TestMoveDisksRefuses(t *testing.T) {
	for target, want := range map[string]string{"vdz": "0 of the 1 disks", "sda": "disk sda has no source"} {
		_, err := MoveDisks(live, map[string]Source{target: {Path: "/a"}})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an ErrInvalid that says %q", target, err, want)
		}
	}
}
