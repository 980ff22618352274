package chaos

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W29. A guest with an ISO of its host in its drive, one with a snapshot, one whose disk somebody copies: none of them can move,
// and nobody tries. The dry run of a drain names each, the drain takes the others away, and each moves once what keeps it has gone.
func TestWhatCannotMoveIsKnownBefore(t *testing.T) {
	s := begin(t)
	host, other := s.lab.Hosts[0], s.lab.Hosts[1]
	const iso = "/var/tmp/tools.iso"
	target := filepath.Join(lab.SharedDir, "copied.to")
	s.Cleanup(func() {
		s.outside("rm", "-f", host.Path(iso), host.Path(target), host.Path(lab.SharedDir+"/kept.qcow2"), host.Path(lab.SharedDir+"/copied.qcow2"))
	})
	s.sharedPool("everybodys", lab.SharedDir)
	_, err := host.Exec(t.Context(), "sh", "-c", "head -c 1M /dev/zero > "+iso)
	s.must(err)
	for _, name := range []string{"kept", "copied"} {
		s.virsh(host, "vol-create-as", "everybodys", name+".qcow2", "48M", "--format", "qcow2")
	}
	s.virsh(other, "pool-refresh", "everybodys")
	start := func(name, disk string) {
		xml := strings.Replace(s.lab.GuestXML(name, 128, lab.Cmdline), "</devices>", disk+"</devices>", 1)
		s.does("vm", "start", name, "--xml", s.document(name, xml), "--node", host.Name)
	}
	for _, name := range []string{"kept", "copied"} {
		start(name, "<disk type='volume' device='disk'><driver name='qemu' type='qcow2' cache='none'/><source pool='everybodys' volume='"+
			name+".qcow2'/><target dev='vda' bus='virtio'/></disk>")
	}
	start("media", "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='"+iso+"'/>"+
		"<target dev='sda' bus='sata'/><readonly/></disk>")
	start("free", "")
	s.virsh(host, "snapshot-create-as", "kept", "before")
	s.virsh(host, "blockcopy", "copied", "vda", target, "--transient-job", "--format", "qcow2", "--bandwidth", "1")

	says := map[string]string{
		"media":  iso + " in its CD drive",
		"kept":   "snapshot before, and libvirt migrates no domain that has any",
		"copied": "block copy of disk vda by somebody else",
	}
	s.within(2*time.Minute, "their pages say what keeps them", func() error {
		for name, words := range says {
			if shown := s.does("vm", "show", name); !strings.Contains(shown, words) {
				return fmt.Errorf("the page of %s does not say %q:\n%s", name, words, shown)
			}
		}
		return nil
	})
	tried, err := s.lab.CLI(t.Context(), "node", "drain", host.Name, "--dry-run")
	s.must(err)
	t.Logf("the dry run:\n%s", tried.Stdout)
	for name, words := range says {
		if !strings.Contains(tried.Stdout, words) {
			t.Errorf("the dry run does not say of %s: %s", name, words)
		}
		s.answers([]string{"vm", "migrate", name, "--to", other.Name}, 1, words)
		s.answers([]string{"vm", "migrate", name, "--to", other.Name, "--dry-run"}, 1, words)
	}
	drained, err := s.lab.CLI(t.Context(), "node", "drain", host.Name, "--yes")
	s.must(err)
	t.Logf("the drain, exit code %d:\n%s", drained.Code, drained.Stdout)
	for name := range says {
		if vm, _ := s.show(name); vm.GetNode() != host.Name || vm.GetEpoch() != 1 {
			t.Errorf("%s is on %s, epoch %d: it was moved, or that was tried", name, vm.GetNode(), vm.GetEpoch())
		}
	}
	if vm, _ := s.show("free"); vm.GetNode() == host.Name {
		t.Error("what can move did not")
	}
	s.does("node", "undrain", host.Name)
	s.answers([]string{"vm", "stop", "copied"}, 1, "the copy of disk vda does not finish", "'berth vm stop copied --interrupt-backup'")

	s.virsh(host, "change-media", "media", "sda", "--eject")
	s.condition("media", "disk sda is empty beside Berth", "'berth vm accept media'")
	s.does("vm", "accept", "media")
	s.virsh(host, "snapshot-delete", "kept", "before")
	s.virsh(host, "blockjob", "copied", "vda", "--abort")
	for name := range says {
		s.within(time.Minute, name+" is free", func() error {
			if vm, _ := s.show(name); len(vm.GetImmovable()) > 0 {
				return fmt.Errorf("%v", vm.GetImmovable())
			}
			return nil
		})
		s.does("vm", "migrate", name, "--to", other.Name)
		s.recovers(name, berthv1.VMState_VM_STATE_RUNNING)
		s.runsOnce(name, other)
	}
}
