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

// FAULTS.md, W25 and W36. Somebody takes a snapshot with virsh, and attaches a disk and a vCPU: the guest writes to other files than its
// record names. It is started again with what it ran with last, on another host, and not one write is lost.
func TestAGuestIsStartedWithWhatItRanWithLast(t *testing.T) {
	s := begin(t)
	host, other := s.lab.Hosts[0], s.lab.Hosts[1]
	image, overlay := filepath.Join(lab.SharedDir, "db.qcow2"), filepath.Join(lab.SharedDir, "db.before")
	more := filepath.Join(lab.SharedDir, "more.raw")
	s.Cleanup(func() { s.outside("rm", "-f", host.Path(image), host.Path(overlay), host.Path(more)) })
	s.sharedPool("everybodys", lab.SharedDir)
	_, err := host.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", image, "48M")
	s.must(err)
	_, err = host.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "raw", more, "8M")
	s.must(err)
	s.does("vm", "start", "db", "--memory", "128M", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline+" lab.disk",
		"--disk", image+",format=qcow2", "--node", host.Name, "--vcpus", "1", "--max-vcpus", "3")
	first := s.diskTick(host, "db")
	if first.Found != 0 {
		t.Fatalf("a new disk has number %d", first.Found)
	}

	s.virsh(host, "snapshot-create-as", "db", "before", "--disk-only", "--no-metadata", "--diskspec", "vda,file="+overlay)
	s.virsh(host, "attach-disk", "db", more, "vdb", "--live", "--driver", "qemu", "--subdriver", "raw")
	s.virsh(host, "setvcpus", "db", "2", "--live")
	s.within(30*time.Second, "the record has what it runs with", func() error {
		shown := s.does("vm", "show", "db")
		for _, words := range []string{overlay + ", its record has " + image, more + ", not in its record", "as it ran last"} {
			if !strings.Contains(shown, words) {
				return fmt.Errorf("its page does not say %q:\n%s", words, shown)
			}
		}
		return nil
	})
	s.condition("db", "its next start uses that; 'berth vm accept db'")
	s.answers([]string{"vm", "revert", "db"}, 1, "what the guest has written there is not in "+image, "blockcommit", "--without-writes")
	last := s.diskTick(host, "db")
	if err := last.After(first); err != nil {
		t.Error(err)
	}

	s.does("vm", "stop", "db")
	s.does("vm", "start", "db", "--node", other.Name)
	again := s.diskTick(other, "db")
	if again.Found < last.Number || again.Still != last.Still {
		t.Errorf("it had written number %d, and finds %d; the still area is %s and was %s", last.Number, again.Found, again.Still, last.Still)
	}
	if has := strings.TrimSpace(s.virsh(other, "vcpucount", "db", "--current", "--live")); has != "2" {
		t.Errorf("it was given 2 vCPUs, and is started with %s", has)
	}
	blocks := s.virsh(other, "domblklist", "db")
	for _, file := range []string{overlay, more} {
		if !strings.Contains(blocks, file) {
			t.Errorf("%s is not among its disks:\n%s", file, blocks)
		}
	}
	s.does("vm", "accept", "db")
	s.within(time.Minute, "nothing warns of it any more", func() error {
		if vm, _ := s.show("db"); vm.GetCondition() != "" || !vm.GetDrift().GetAccepted() {
			return fmt.Errorf("%q, %v", vm.GetCondition(), vm.GetDrift())
		}
		return nil
	})

	// The snapshot is written back, and the disk detached: it is as its record has it.
	s.virsh(other, "blockcommit", "db", "vda", "--active", "--pivot", "--wait")
	s.virsh(other, "detach-disk", "db", "vdb", "--live")
	s.within(30*time.Second, "it is as its record has it", func() error {
		if vm, _ := s.show("db"); vm.GetDrift() != nil {
			return fmt.Errorf("%v", vm.GetDrift())
		}
		return nil
	})
	last = s.diskTick(other, "db")
	s.does("vm", "stop", "db")
	s.does("vm", "start", "db", "--node", host.Name)
	if again = s.diskTick(host, "db"); again.Found < last.Number {
		t.Errorf("it had written number %d, and finds %d", last.Number, again.Found)
	}
	s.recovers("db", berthv1.VMState_VM_STATE_RUNNING)
	s.runsOnce("db", host)
}

// A guest is told to power off right after its snapshot was taken, by itself and not by Berth: nothing is asked of it any more.
func TestASnapshotTakenJustBeforeAGuestPowersOffIsKept(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	image, overlay := filepath.Join(lab.SharedDir, "late.qcow2"), filepath.Join(lab.SharedDir, "late.before")
	s.Cleanup(func() { s.outside("rm", "-f", host.Path(image), host.Path(overlay)) })
	_, err := host.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", image, "48M")
	s.must(err)
	s.does("vm", "start", "late", "--memory", "128M", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline+" lab.disk",
		"--disk", image+",format=qcow2", "--node", host.Name)
	s.diskTick(host, "late")
	s.virsh(host, "snapshot-create-as", "late", "before", "--disk-only", "--no-metadata", "--diskspec", "vda,file="+overlay)
	last := s.diskTick(host, "late")
	s.virsh(host, "destroy", "late")
	s.noticesTheEnd("late", time.Minute)
	s.does("vm", "start", "late", "--node", host.Name)
	if again := s.diskTick(host, "late"); again.Found < last.Number {
		t.Errorf("it had written number %d, and finds %d", last.Number, again.Found)
	}
	s.runsOnce("late", host)
}

// A disk is copied to another file and the guest ended while its node's agent is gone. Nothing of the old file leads to the new one: what
// libvirt wrote down of the guest was kept, and its next start uses the new one.
func TestADiskCopiedWhileNoAgentIsThereIsStartedFrom(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	image, copied := filepath.Join(lab.SharedPoolDir, "left.qcow2"), filepath.Join(lab.SharedPoolDir, "right.qcow2")
	s.Cleanup(func() { s.outside("rm", "-f", host.Path(image), host.Path(copied)) })
	_, err := host.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", image, "48M")
	s.must(err)
	s.does("vm", "start", "left", "--memory", "128M", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline+" lab.disk",
		"--disk", image+",format=qcow2", "--node", host.Name)
	s.diskTick(host, "left")
	s.must(host.KillAgent())
	s.virsh(host, "blockcopy", "left", "vda", copied, "--format", "qcow2", "--transient-job", "--wait", "--pivot")
	last := s.diskTick(host, "left")
	s.virsh(host, "destroy", "left")
	s.must(host.StartAgent(t.Context()))
	s.noticesTheEnd("left", 2*time.Minute)
	s.does("vm", "start", "left", "--node", host.Name)
	if again := s.diskTick(host, "left"); again.Found < last.Number {
		t.Errorf("it had written number %d, and finds %d", last.Number, again.Found)
	}
	if blocks := s.virsh(host, "domblklist", "left"); !strings.Contains(blocks, copied) {
		t.Errorf("%s is not among its disks:\n%s", copied, blocks)
	}
	s.runsOnce("left", host)
}

// A snapshot is taken and the guest ended while its node's agent is gone, and the service that keeps what it ran with: nobody has seen it.
// The disk of its record is not taken for the newest, and somebody who accepts the snapshot finds all that was written.
func TestASnapshotTakenWhileNobodyLooksIsAskedAbout(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	image, overlay := filepath.Join(lab.SharedPoolDir, "dark.qcow2"), filepath.Join(lab.SharedPoolDir, "dark.before")
	s.Cleanup(func() { s.outside("rm", "-f", host.Path(image), host.Path(overlay)) })
	_, err := host.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", image, "48M")
	s.must(err)
	s.does("vm", "start", "dark", "--memory", "128M", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline+" lab.disk",
		"--disk", image+",format=qcow2", "--node", host.Name)
	s.diskTick(host, "dark")
	s.must(host.KillAgent())
	s.must(host.Kill(lab.StatusFiles))
	s.virsh(host, "snapshot-create-as", "dark", "before", "--disk-only", "--no-metadata", "--diskspec", "vda,file="+overlay)
	last := s.diskTick(host, "dark")
	s.virsh(host, "destroy", "dark")
	s.must(host.StartAgent(t.Context()))
	s.noticesTheEnd("dark", 2*time.Minute)
	s.answers([]string{"vm", "start", "dark", "--node", host.Name}, 1, image, overlay)
	s.answers([]string{"vm", "start", "dark", "--node", host.Name}, 1, image, overlay, "berth vm accept dark", "berth vm revert dark")
	s.does("vm", "accept", "dark")
	s.does("vm", "start", "dark", "--node", host.Name)
	if again := s.diskTick(host, "dark"); again.Found < last.Number {
		t.Errorf("it had written number %d, and finds %d", last.Number, again.Found)
	}
	s.runsOnce("dark", host)
}

// FAULTS.md, W15. Two hosts have a file of the same path, and nobody has said that it is the same one: a VM is started again where it ran.
// A pool that is declared as shared sets it free.
func TestAFileOfTheSamePathIsNotTakenForTheDisk(t *testing.T) {
	s := begin(t)
	host, other := s.lab.Hosts[0], s.lab.Hosts[1]
	const image = "/var/tmp/own.qcow2"
	s.Cleanup(func() { s.outside("rm", "-f", host.Path(image), other.Path(image)) })
	for _, h := range []*lab.Host{host, other} {
		_, err := h.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", image, "48M")
		s.must(err)
	}
	s.does("vm", "start", "own", "--memory", "128M", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline+" lab.disk",
		"--disk", image+",format=qcow2", "--node", host.Name)
	last := s.diskTick(host, "own")
	s.within(30*time.Second, "its page says that it is bound", func() error {
		if shown := s.does("vm", "show", "own"); !strings.Contains(shown, host.Name+": a disk of it is in no pool") {
			return fmt.Errorf("%s", shown)
		}
		return nil
	})
	s.answers([]string{"vm", "migrate", "own", "--to", other.Name}, 2, "the VM's disk is on "+host.Name)
	s.answers([]string{"vm", "set", "own", "--ha"}, 1, "could be restarted nowhere else", "berth pool add")
	s.does("vm", "stop", "own")
	s.answers([]string{"vm", "start", "own", "--node", other.Name}, 2, "the VM's disk is on "+host.Name)
	s.does("vm", "start", "own")
	if again := s.diskTick(host, "own"); again.Found < last.Number {
		t.Errorf("it had written number %d, and finds %d", last.Number, again.Found)
	}
	s.runsOnce("own", host)
}

// sharedPool declares a folder that all hosts have, until the test ends.
func (s *site) sharedPool(name, folder string) {
	s.Helper()
	for _, h := range s.lab.Hosts {
		s.must(h.AddPool(s.Context(), name, folder))
	}
	s.does("pool", "add", name, "--cluster", "default", "--scope", "shared")
	s.Cleanup(func() {
		s.must(ignore(s.lab.Berth(s.background(), "pool", "delete", name, "--yes")))
		for _, h := range s.lab.Hosts {
			_, err := h.Exec(s.background(), "sh", "-c", "virsh -q pool-destroy "+name+"; virsh -q pool-undefine "+name)
			s.must(err)
		}
	})
}

// diskTick is what the guest on that host says next about its disk.
func (s *site) diskTick(on *lab.Host, name string) lab.DiskTick {
	s.Helper()
	var tick lab.DiskTick
	s.within(90*time.Second, name+" tells of its disk on "+on.Name, func() (err error) {
		tick, err = on.ReadDiskTick(s.Context(), name)
		return err
	})
	return tick
}

// noticesTheEnd waits until Berth knows that a guest runs nowhere.
func (s *site) noticesTheEnd(name string, limit time.Duration) {
	s.Helper()
	s.within(limit, "the end of "+name+" is noticed", func() error {
		if vm, _ := s.show(name); vm.GetNode() != "" {
			return fmt.Errorf("it is on %s", vm.GetNode())
		}
		return nil
	})
}

// Somebody moves a guest with virsh to a host that does not have its disk, which fails, while no agent is there. What libvirt wrote down of
// the copy was kept for that, and nothing of it has run, so it does not count: the guest's next start is where its disk is.
func TestAMoveThatFailsLeavesAGuestWhereItsDiskIs(t *testing.T) {
	s := begin(t)
	host, other := s.lab.Hosts[0], s.lab.Hosts[1]
	const image = "/var/tmp/stays.qcow2"
	s.Cleanup(func() { s.outside("rm", "-f", host.Path(image)) })
	_, err := host.Exec(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", image, "48M")
	s.must(err)
	s.does("vm", "start", "stays", "--memory", "128M", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline+" lab.disk",
		"--disk", image+",format=qcow2", "--node", host.Name)
	s.diskTick(host, "stays")
	s.must(other.KillAgent())
	to := "qemu+tls://" + other.Name + "/system"
	if said, err := host.Virsh(t.Context(), "migrate", "--live", "--p2p", "--tls", "--unsafe", "stays", to); err == nil {
		t.Fatalf("it moved to where its disk is not: %s", said)
	}
	s.must(other.StartAgent(t.Context()))
	last := s.diskTick(host, "stays")
	s.virsh(host, "destroy", "stays")
	s.noticesTheEnd("stays", time.Minute)
	s.does("vm", "start", "stays")
	if again := s.diskTick(host, "stays"); again.Found < last.Number {
		t.Errorf("it had written number %d, and finds %d", last.Number, again.Found)
	}
	s.runsOnce("stays", host)
}
