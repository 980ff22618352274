package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// What people attach, detach and put into a drive with Berth is in the guest that runs and at its next start, under the name of who has
// done it: nobody takes it for a change beside Berth.
func TestDevicesChangeWhileAGuestRuns(t *testing.T) {
	l := raise(t, Options{Hosts: 1, Coordinators: 1})
	ctx, host := t.Context(), l.Hosts[0]
	folder := t.TempDir()
	disk, iso := filepath.Join(folder, "data.img"), filepath.Join(folder, "tools.iso")
	for _, file := range []string{disk, iso} {
		if _, err := host.Exec(ctx, "qemu-img", "create", "-q", "-f", "raw", file, "8M"); err != nil {
			t.Fatal(err)
		}
	}
	must := l.doing(t)
	must(starting("web", "128M")...)
	must(starting("other", "128M")...)
	awaitBoot(ctx, t, l, "web", "")

	said := must("vm", "attach", "disk", "web", "--disk", disk, "--dry-run")
	if !strings.Contains(said, "disk vda ("+disk+") would be attached on") {
		t.Errorf("a dry run says %q", said)
	}
	must("vm", "attach", "disk", "web", "--disk", disk)
	awaitDevices(ctx, t, l, host, "web", "vda", disk, true)
	if said, err := l.Berth(ctx, "vm", "attach", "disk", "other", "--disk", disk); err == nil || !strings.Contains(said+err.Error(), disk) {
		t.Errorf("the disk of another VM is attached: %v\n%s", err, said)
	}
	must("vm", "stop", "web", "--force")
	must("vm", "start", "web")
	awaitBoot(ctx, t, l, "web", "")
	awaitDevices(ctx, t, l, host, "web", "vda", disk, true)
	must("vm", "detach", "disk", "web", "--target", "vda")
	awaitDevices(ctx, t, l, host, "web", "vda", disk, false)

	// A VM that does not run has it at its next start.
	must("vm", "stop", "web", "--force")
	if said := must("vm", "attach", "disk", "web", "--disk", disk); !strings.Contains(said, "its next start has that") {
		t.Errorf("of a stopped VM it says %q", said)
	}
	must("vm", "start", "web")
	awaitDevices(ctx, t, l, host, "web", "vda", disk, true)

	// A drive, which only a VM of its own XML has.
	xml, err := host.Virsh(ctx, "dumpxml", "other")
	if err != nil {
		t.Fatal(err)
	}
	drive := "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><target dev='sda' bus='sata'/><readonly/></disk></devices>"
	must("vm", "stop", "other", "--force")
	must("vm", "delete", "other", "--yes")
	file := filepath.Join(folder, "other.xml")
	writeText(t, file, strings.Replace(xml, "</devices>", drive, 1))
	must("vm", "start", "other", "--xml", file)
	awaitBoot(ctx, t, l, "other", "")
	must("vm", "media", "insert", "other", "--iso", iso)
	awaitDevices(ctx, t, l, host, "other", "sda", iso, true)
	must("vm", "media", "eject", "other")
	awaitDevices(ctx, t, l, host, "other", "sda", iso, false)
	if said, err := host.Virsh(ctx, "pool-create-as", "isos", "dir", "--target", folder); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	must("vm", "media", "insert", "other", "--iso", "isos/tools.iso")
	awaitDevices(ctx, t, l, host, "other", "sda", "tools.iso", true)
	if vm := showVM(ctx, t, l, "other"); !strings.Contains(fmt.Sprint(vm.GetDrift()), "isos/tools.iso") {
		t.Errorf("its record has %v", vm.GetDrift())
	}
	if document := must("vm", "xml", "other"); !strings.Contains(document, "tools.iso") || strings.Contains(document, "passwd=") {
		t.Errorf("it runs with %s", document)
	}
	must("vm", "media", "eject", "other")
	awaitDevices(ctx, t, l, host, "other", "sda", "tools.iso", false)
}

// awaitDevices waits until a guest has, or has not, a file as a disk, and then for two looks at what others have changed: none of them
// finds anything.
func awaitDevices(ctx context.Context, t *testing.T, l *Lab, host *Host, guest, target, file string, has bool) {
	t.Helper()
	err := await(ctx, fmt.Sprintf("%s to have %s: %t", guest, file, has), time.Minute, func() (bool, error) {
		text, err := host.Virsh(ctx, "domblklist", guest)
		if err != nil {
			return false, err
		}
		if strings.Contains(text, file) != has {
			return false, fmt.Errorf("it has\n%s", text)
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(12 * time.Second)
	vm := showVM(ctx, t, l, guest)
	if vm.GetConditionKind() == berthv1.ConditionKind_CONDITION_KIND_OUT_OF_BAND {
		t.Errorf("it is taken for a change beside Berth: %s", vm.GetCondition())
	}
	for _, one := range vm.GetDrift().GetDevices() {
		if one.GetBy() == "" {
			t.Errorf("it is taken for a change beside Berth: %v", one)
		}
		if one.GetKey() == target && one.GetIs() == file && !has {
			t.Errorf("its record still has %v", one)
		}
	}
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A disk is made for a guest that runs, in a pool, and is the same disk at its next start. What cannot be attached leaves nothing.
func TestADiskIsMadeForAGuestThatRuns(t *testing.T) {
	l := raise(t, Options{Hosts: 1, Coordinators: 1})
	ctx, host := t.Context(), l.Hosts[0]
	folder := t.TempDir()
	must := l.doing(t)
	if said, err := host.Virsh(ctx, "pool-create-as", "disks", "dir", "--target", folder); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	must("pool", "add", "disks", "--cluster", "default", "--scope", "local")
	must(starting("web", "128M")...)
	must(starting("other", "128M")...)
	awaitBoot(ctx, t, l, "web", "")
	err := await(ctx, "the pool to be seen", time.Minute, func() (bool, error) {
		_, err := l.Berth(ctx, "vm", "attach", "disk", "web", "--size", "64M", "--pool", "disks", "--dry-run")
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files := filesIn(t, folder); len(files) != 0 {
		t.Errorf("a dry run has made %v", files)
	}
	must("vm", "attach", "disk", "web", "other", "--size", "64M", "--pool", "disks")
	files := filesIn(t, folder)
	if len(files) != 2 {
		t.Fatalf("two disks are %v", files)
	}
	text, err := host.Virsh(ctx, "domblklist", "web")
	if err != nil {
		t.Fatal(err)
	}
	file := files[0]
	if !strings.Contains(text, file) {
		file = files[1]
	}
	awaitDevices(ctx, t, l, host, "web", "vda", file, true)
	if said := must("disk", "list"); !strings.Contains(said, "web-disk1") || !strings.Contains(said, "other-disk1") {
		t.Errorf("disks are\n%s", said)
	}
	must("vm", "stop", "web", "--force")
	must("vm", "start", "web")
	awaitBoot(ctx, t, l, "web", "")
	awaitDevices(ctx, t, l, host, "web", "vda", file, true)

	// libvirt plugs no SATA disk into a guest that runs.
	wrong := []string{"vm", "attach", "disk", "web", "--size", "64M", "--pool", "disks", "--bus", "sata", "--name", "wrong"}
	if said, err := l.Berth(ctx, wrong...); err == nil {
		t.Errorf("a disk was attached that cannot be:\n%s", said)
	}
	if left := filesIn(t, folder); len(left) != 2 {
		t.Errorf("it has left %v", left)
	}
	if said := must("disk", "list"); strings.Contains(said, "wrong") {
		t.Errorf("it has left a record:\n%s", said)
	}
	must("vm", "detach", "disk", "web", "--target", "vda")
	awaitDevices(ctx, t, l, host, "web", "vda", file, false)
	must("disk", "delete", "web-disk1", "--yes")
	must("vm", "stop", "other", "--force")
	must("vm", "delete", "other", "--yes")
	err = await(ctx, "its disk to be gone with it", time.Minute, func() (bool, error) {
		if left := filesIn(t, folder); len(left) > 0 {
			return false, fmt.Errorf("there are %v", left)
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range entries {
		names = append(names, one.Name())
	}
	return names
}
