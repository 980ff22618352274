package chaos

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W7. A machine boots from a copy of another one's system disk, and says that it is that node. Its empty list of guests is
// not believed: the node is held, nothing is restarted, until somebody says which machine it is.
func TestAMachineThatIsClonedIsNotBelieved(t *testing.T) {
	const one, other = "11111111-0042-3510-8052-b4c04f4d3732", "22222222-0042-3510-8052-b4c04f4d3732"
	s := begin(t)
	host, copied := s.lab.Hosts[0], s.lab.Hosts[2]
	// identity gives a machine what its firmware would tell.
	identity := func(h *lab.Host, uuid string) {
		t.Helper()
		_, err := h.Exec(t.Context(), "sh", "-c", `mkdir -p /run/berth-agent && echo "$1" >/run/berth-agent/product_uuid`, "identity", uuid)
		s.must(err)
	}
	identity(host, one)
	s.restartAgent(host)
	s.node(host, 30*time.Second, up)
	s.Cleanup(func() {
		_, err := host.Exec(s.background(), "rm", "-f", "/run/berth-agent/product_uuid")
		s.must(err)
	})
	s.does("vm", "start", "kept", "--memory", "64M", "--node", host.Name, "--ha")

	// The copy: another machine with everything that the agent of the node has on its disk.
	s.must(copied.StopAgent())
	disk := []string{"/etc/berth", "/var/lib/berth/agent"}
	s.Cleanup(func() {
		if copied.Pid(lab.Agent) != 0 {
			s.must(copied.StopAgent())
		}
		for _, directory := range disk {
			s.outside("rm", "-r", copied.Path(directory))
			s.outside("mv", copied.Path(directory+".own"), copied.Path(directory))
		}
		_, err := copied.Exec(s.background(), "rm", "-f", "/run/berth-agent/product_uuid")
		s.must(err)
	})
	for _, directory := range disk {
		s.outside("mv", copied.Path(directory), copied.Path(directory+".own"))
		s.outside("cp", "-a", host.Path(directory), copied.Path(directory))
	}
	identity(copied, other)
	s.must(copied.StartAgent(t.Context()))

	s.within(time.Minute, "the node is held", func() error {
		shown := s.does("node", "show", host.Name)
		for _, word := range []string{"two machines", "berth node set " + host.Name + " --machine", other} {
			if !strings.Contains(shown, word) {
				return fmt.Errorf("its page does not say %q:\n%s", word, shown)
			}
		}
		return nil
	})
	time.Sleep(20 * time.Second) // inventories of both
	if where, err := s.lab.HostOf("kept"); err != nil || where != host || s.watch.Running("kept") != 1 {
		t.Fatalf("the guest is on %v, executed %d times: %v", where, s.watch.Running("kept"), err)
	}
	if status := s.berth("status").Stdout; !strings.Contains(status, "--machine") {
		t.Errorf("the status does not say what to do:\n%s", status)
	}
	s.answers([]string{"vm", "start", "another", "--memory", "64M", "--node", host.Name}, 2, host.Name)

	s.must(copied.StopAgent())
	s.does("node", "set", host.Name, "--machine", one)
	s.node(host, time.Minute, up)
	s.recovers("kept", berthv1.VMState_VM_STATE_RUNNING)
	s.runsOnce("kept", host)
}

// outside runs a command on the machine that has the lab.
func (s *site) outside(argv ...string) {
	s.Helper()
	if output, err := exec.CommandContext(s.background(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, output)
	}
}
