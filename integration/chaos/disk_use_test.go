package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

// FAULTS.md, W8. Somebody has given a VM's disk to a domain of their own, on another host: the VM is not started beside it, whatever the
// locks of the storage say.
func TestAVMIsNotStartedBesideADomainWithItsDisk(t *testing.T) {
	s := begin(t)
	host, there := s.lab.Hosts[0], s.lab.Hosts[1]
	disk := filepath.Join(lab.SharedDir, "given-away.img")
	on := host.Path(disk)
	s.must(os.WriteFile(on, nil, 0o600))
	s.must(os.Truncate(on, 16*mebibyte))
	xml := strings.Replace(s.lab.GuestXML("stray", 128, lab.Cmdline), "</devices>", fmt.Sprintf(
		"<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='%s'/><target dev='vda' bus='virtio'/></disk></devices>",
		disk), 1)
	s.virsh(there, "create", s.document("stray", xml))
	start := []string{
		"vm", "start", "db", "--memory", "128M", "--vcpus", "1", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline,
		"--disk", disk + ",format=raw", "--node", host.Name,
	}
	s.within(time.Minute, "a dry run meets the stray", func() error {
		if result := s.berth(append(slices.Clone(start), "--dry-run")...); result.Code == 0 {
			return fmt.Errorf("it would be started: %s", result.Stdout)
		}
		return nil
	})
	s.answers(start, 1, fmt.Sprintf("domain %q on %s writes to disk %s of VM %q", "stray", there.Name, disk, "db"), "virsh shutdown stray")
	s.virsh(there, "destroy", "stray")
	s.within(time.Minute, "the VM starts when the stray has ended", func() error {
		if result := s.berth(start...); result.Code != 0 {
			return fmt.Errorf("%s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	s.runsOnce("db", host)
}

// Somebody runs a QEMU of their own, which no libvirt knows, on a VM's disk. QEMU's lock refuses the VM, and the failure says what has the
// disk, and not what libvirt says.
func TestAStartOnADiskThatAQEMUOfSomebodyHas(t *testing.T) {
	s := begin(t)
	host, there := s.lab.Hosts[0], s.lab.Hosts[1]
	disk := filepath.Join(lab.SharedDir, "held.img")
	on := host.Path(disk)
	s.must(os.WriteFile(on, nil, 0o600))
	s.must(os.Truncate(on, 16*mebibyte))
	const pidFile = "/run/loose.pid"
	_, err := there.Exec(t.Context(), "qemu-system-x86_64", "-name", "loose", "-uuid", "5a5ddf0f-6b46-4f7c-9a4c-3f2f3a0b1c2d", "-S",
		"-display", "none", "-m", "16", "-drive", "file="+disk+",format=raw,if=virtio", "-daemonize", "-pidfile", pidFile)
	s.must(err)
	end := func() { _, _ = there.Exec(s.background(), "sh", "-c", "kill $(cat "+pidFile+") && rm -f "+pidFile) }
	s.Cleanup(end)
	start := func(node *lab.Host) []string {
		return []string{
			"vm", "start", "db", "--memory", "128M", "--vcpus", "1", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline,
			"--disk", disk + ",format=raw", "--node", node.Name,
		}
	}
	s.answers(start(there), 1, there.Name+": ", "disk "+disk+" is held by another QEMU: process ", `guest "loose"`)
	// Until the other node has told that its libvirt has removed what could not be started, that is in the way.
	s.within(time.Minute, "QEMU's lock refuses it from another host", func() error {
		refused, text := s.berth(start(host)...), "disk "+disk+" is held by another QEMU; "
		if said := refused.Stdout + refused.Stderr; refused.Code == 1 && !strings.Contains(said, text) {
			return errors.New(said)
		}
		s.check(start(host), refused, 1, host.Name+": ", text, "other hosts")
		return nil
	})
	end()
	s.within(time.Minute, "the VM starts when that has ended", func() error {
		if result := s.berth(start(host)...); result.Code != 0 {
			return fmt.Errorf("%s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	s.runsOnce("db", host)
}
