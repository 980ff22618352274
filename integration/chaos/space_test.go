package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

// FAULTS.md, W17. A pool has no room left, and QEMU pauses the guest that writes there. That is told, and when there is room the guest runs
// on where it stood, by itself.
func TestAGuestWithoutRoomRunsOnWhenThereIsSome(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	const folder = "/var/lib/libvirt/small"
	shell := func(script string) {
		t.Helper()
		_, err := host.Exec(s.background(), "sh", "-c", script)
		s.must(err)
	}
	shell("mkdir -p " + folder + " && mount -t tmpfs -o mode=711,size=40m none " + folder)
	s.must(host.AddPool(t.Context(), "small", folder))
	s.does("pool", "add", "small", "--cluster", "default", "--scope", "local")
	s.Cleanup(func() {
		s.must(s.remove(s.background(), "db"))
		s.must(ignore(s.lab.Berth(s.background(), "pool", "delete", "small", "--yes")))
		shell("virsh -q pool-destroy small; virsh -q pool-undefine small; umount " + folder)
	})
	s.within(time.Minute, "the pool is there", func() error {
		if text := s.does("pool", "show", "small"); !strings.Contains(text, "40MiB") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	shell("head -c 36M /dev/zero >" + folder + "/filler")
	s.does("vm", "start", "db", "--memory", "128M", "--vcpus", "1", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline",
		lab.Cmdline+" lab.disk", "--root-size", "33M", "--pool", "small", "--node", host.Name)
	s.within(2*time.Minute, "the guest has stopped for want of space", func() error {
		if state := strings.TrimSpace(s.virsh(host, "domstate", "db", "--reason")); state != "paused (I/O error)" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	s.condition("db", "when pool small there is less than 95 % full it runs on by itself")
	s.within(time.Minute, "the status tells of the pool", func() error {
		if status := s.does("status"); !strings.Contains(status, "pool small on "+host.Name+" is ") {
			return fmt.Errorf("%s", status)
		}
		return nil
	})
	shell("rm " + folder + "/filler")
	var first lab.DiskTick
	s.within(3*time.Minute, "the guest runs on", func() (err error) {
		first, err = host.ReadDiskTick(t.Context(), "db")
		return err
	})
	s.within(time.Minute, "the guest writes, and reads what it has written", func() error {
		next, err := host.ReadDiskTick(t.Context(), "db")
		if err != nil {
			return err
		}
		return next.After(first)
	})
	s.within(time.Minute, "nothing is told of it any more", func() error {
		if vm, _ := s.show("db"); vm.GetCondition() != "" {
			return fmt.Errorf("%s", vm.GetCondition())
		}
		return nil
	})
	s.runsOnce("db", host)
}
