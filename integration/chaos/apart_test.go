package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

// FAULTS.md, W5. A pool that is declared as shared has its folder mounted on two hosts, and not on the third one. A VM with its disk there
// is not moved to that host, nor started there, and the dry runs say why; the other two are bound by nothing, and a plain file there moves
// between them as well.
func TestAPoolThatOneHostHasForItself(t *testing.T) {
	s := begin(t)
	const folder = lab.SharedDir + "/lies"
	host, honest, liar := s.lab.Hosts[0], s.lab.Hosts[1], s.lab.Hosts[2]
	s.on(host.Machine, "mkdir", "-p", folder)
	s.says(liar.Machine, []string{"sh", "-c", `mkdir -p /var/lib/libvirt/lies && mount --bind /var/lib/libvirt/lies "$1"`, "mount", folder}, 0)
	s.Cleanup(func() {
		if _, err := liar.Exec(s.background(), "umount", "--lazy", folder); err != nil {
			s.Error(err)
		}
	})
	s.sharedPool("lies", folder)
	s.within(110*time.Second, "the host is found out", func() error {
		text := s.does("pool", "show", "lies")
		sides := host.Name + ", " + honest.Name + " | " + liar.Name + ": a VM with a disk there stays on its side"
		for _, word := range []string{"the pool is not shared", sides} {
			if !strings.Contains(text, word) {
				return fmt.Errorf("it does not say %q:\n%s", word, text)
			}
		}
		return nil
	})
	s.answers([]string{"status"}, 0, "VMs with disks there are moved and started on their side alone")
	s.does("vm", "start", "web", "--memory", "128M", "--vcpus", "1", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline,
		"--root-size", "16M", "--pool", "lies", "--node", host.Name)
	says := "pool lies on " + liar.Name + " is not the one on " + host.Name
	s.answers([]string{"vm", "migrate", "web", "--to", liar.Name, "--dry-run"}, 2, says, "did not see a file that")
	s.answers([]string{"vm", "migrate", "web", "--to", liar.Name}, 2, says)
	s.does("vm", "migrate", "web", "--to", honest.Name)
	s.runsOnce("web", honest)
	s.does("node", "drain", host.Name, "--yes") // so that the liar is the only node left
	s.answers([]string{"node", "drain", honest.Name, "--dry-run"}, 1, "web", "same-pool refuses 1",
		"pool lies on "+liar.Name+" is not the one on "+honest.Name)
	s.answers([]string{"node", "drain", honest.Name, "--yes"}, 1, "web")
	s.runsOnce("web", honest)
	for _, node := range []string{host.Name, honest.Name} {
		s.does("node", "undrain", node)
	}
	s.does("vm", "stop", "web", "--force")
	s.answers([]string{"vm", "start", "web", "--node", liar.Name}, 2, "pool lies on "+liar.Name+" is not the one on "+honest.Name)
	s.does("vm", "start", "web", "--node", host.Name)
	s.runsOnce("web", host)

	file := folder + "/plain.raw"
	s.on(host.Machine, "sh", "-c", "head -c 16M /dev/zero > "+file)
	s.does("vm", "start", "plain", "--memory", "128M", "--vcpus", "1", "--kernel", lab.Kernel, "--initrd", lab.Initrd,
		"--cmdline", lab.Cmdline, "--disk", file, "--node", host.Name)
	s.answers([]string{"vm", "migrate", "plain", "--to", liar.Name, "--dry-run"}, 2, says)
	s.does("node", "drain", host.Name, "--yes") // libvirt does not know that the file system is shared, and Berth does
	for _, name := range []string{"plain", "web"} {
		s.runsOnce(name, honest)
	}
	s.does("node", "undrain", host.Name)
	for _, name := range []string{"plain", "web"} {
		s.does("vm", "stop", name, "--force")
		s.does("vm", "delete", name, "--yes")
	}
	s.on(host.Machine, "rm", "-f", file)
}
