package hypervisor_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/agent/hypervisor"
)

func TestDisks(t *testing.T) {
	got, err := hypervisor.Disks(`<domain type='kvm'><devices>
  <disk type='file' device='disk'><source file='/pools/a' index='1'/>
    <backingStore type='file' index='2'><format type='qcow2'/><source file='/images/b'/>
      <backingStore type='volume'><format type='raw'/><source pool='images' volume='c'/><backingStore/></backingStore></backingStore>
    <target dev='vda' bus='virtio'/></disk>
  <disk type='volume' device='disk'><source pool='local' volume='d'/>
    <mirror type='file' job='copy'><format type='qcow2'/><source file='/pools/e'/></mirror><target dev='vdb' bus='virtio'/></disk>
  <disk type='block' device='disk'><source dev='/dev/vg/f'/><target dev='sda' bus='scsi'/></disk>
  <disk type='network' device='disk'><source protocol='nbd' name='g'><host name='h'/></source><target dev='vdc' bus='virtio'/></disk>
  <disk type='file' device='cdrom'><target dev='sdb' bus='sata'/></disk>
</devices></domain>`)
	if err != nil {
		t.Fatal(err)
	}
	want := []hypervisor.Disk{
		{
			Target: "vda", Source: hypervisor.Source{Path: "/pools/a"},
			Others: []hypervisor.Source{{Path: "/images/b"}, {Pool: "images", Volume: "c"}},
		},
		{Target: "vdb", Source: hypervisor.Source{Pool: "local", Volume: "d"}, Others: []hypervisor.Source{{Path: "/pools/e"}}},
		{Target: "sda", Source: hypervisor.Source{Path: "/dev/vg/f"}},
		{Target: "vdc"},
		{Target: "sdb"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := hypervisor.Disks("<domain type='kvm'/>"); err != nil || len(got) > 0 {
		t.Errorf("no devices: %v, %v", got, err)
	}
	if _, err := hypervisor.Disks("<domain"); !errors.Is(err, hypervisor.ErrInvalidXML) {
		t.Errorf("no XML: %v", err)
	}
}
