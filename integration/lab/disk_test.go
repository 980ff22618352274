package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/shared/units"
)

// diskXML is a guest that has nothing but a disk.
const diskXML = `<domain type="%s">
  <name>%s</name>
  <memory unit="MiB">128</memory>
  <vcpu>1</vcpu>
  <os><type arch="x86_64" machine="pc">hvm</type></os>
  <features><acpi/></features>
  <devices>
    <disk type="file" device="disk">
      <driver name="qemu" type="qcow2" cache="none"/>
      <source file="%s"/>
      <target dev="vda" bus="virtio"/>
    </disk>
    <serial type="pty"/>
  </devices>
</domain>
`

// A guest boots from a thin copy of the image in a pool of the host's own and takes it along to another host, by hand.
func TestAGuestBootsFromItsDiskAndTakesItAlong(t *testing.T) {
	l := raise(t, Options{Hosts: 2, LocalPool: 256 * units.MiB})
	source, target := l.Hosts[0], l.Hosts[1]
	ctx := t.Context()
	do := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.MakeDiskImage(ctx); err != nil {
		t.Fatal(err)
	}
	const size = "64M"
	for _, h := range l.Hosts {
		do(h.Exec(ctx, "cp", DiskImage, LocalPoolDir+"/image.qcow2"))
	}
	do(source.Exec(ctx, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", "image.qcow2", LocalPoolDir+"/root.qcow2", size))
	volumes, err := l.Volumes(ctx)
	want := []string{"node1/local/image.qcow2", "node1/local/root.qcow2", "node2/local/image.qcow2"}
	if err != nil || !slices.Equal(volumes, want) {
		t.Errorf("the pools have %q, want %q: %v", volumes, want, err)
	}
	if text, err := source.Virsh(ctx, "pool-info", "local", "--bytes"); err != nil || !strings.Contains(text, fmt.Sprint(256<<20)) {
		t.Errorf("the pool of 256 MiB is %s: %v", text, err)
	}

	if err := source.write("var/tmp/disky.xml", fmt.Sprintf(diskXML, l.VirtType, "disky", LocalPoolDir+"/root.qcow2")); err != nil {
		t.Fatal(err)
	}
	do(source.Virsh(ctx, "create", "/var/tmp/disky.xml"))
	before, err := l.ReadDiskTick(ctx, "disky")
	if err != nil {
		t.Fatal(err)
	}
	if before.Size != 64*units.MiB || !before.Intact || before.Label != "-" {
		t.Errorf("the guest says of its disk: %+v", before)
	}
	checksum := func(h *Host) string {
		t.Helper()
		file, err := h.DiskPath(ctx, "disky", "vda")
		if err != nil {
			t.Fatal(err)
		}
		sum, err := h.Checksum(ctx, file, "qcow2", StillSize)
		if err != nil || len(sum) != 64 {
			t.Fatalf("the checksum of %s is %q: %v", file, sum, err)
		}
		return sum
	}
	sum := checksum(source)
	do(target.Exec(ctx, "qemu-img", "create", "-q", "-f", "qcow2", LocalPoolDir+"/root.qcow2", size))
	do(source.Virsh(ctx, "migrate", "--live", "--p2p", "--tls", "--copy-storage-all", "disky", "qemu+tls://node2/system"))
	after, err := target.ReadDiskTick(ctx, "disky")
	if err != nil {
		t.Fatal(err)
	}
	if err := after.After(before); err != nil {
		t.Error(err)
	}
	if got := checksum(target); got != sum {
		t.Errorf("the disk has the checksum %s, on the source it had %s", got, sum)
	}
}
