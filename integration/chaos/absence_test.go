package chaos

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// A host is dead, and nothing can prove that it is off. A highly available guest of another one, whose end its agent has seen, is
// restarted all the same; one of the dead host is not.
func TestAGuestThatCrashesIsRestartedWhileAnotherHostIsDead(t *testing.T) {
	s := begin(t)
	dead, here := s.lab.Hosts[2], s.lab.Hosts[0]
	s.does("vm", "start", "kept", "--memory", "64M", "--node", here.Name, "--ha")
	s.does("vm", "start", "there", "--memory", "64M", "--node", dead.Name, "--ha")
	s.must(dead.PowerOff())
	s.node(dead, time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	for round := range 2 { // it is restarted on a node that is heard, and crashes there as well
		where, err := s.lab.HostOf("kept")
		s.must(err)
		before := s.qemu("kept", where)
		s.must(unix.Kill(before, unix.SIGKILL))
		died := time.Now()
		s.within(time.Minute, fmt.Sprintf("after crash %d the guest runs again", round+1), func() error {
			for _, host := range s.lab.Hosts {
				for _, guest := range host.QEMUs() {
					if guest.Name == "kept" && guest.PID != before && s.watch.Running("kept") == 1 {
						return nil
					}
				}
			}
			return errors.New("no new process executes it")
		})
		t.Logf("from failure to running again: %s", time.Since(died).Round(100*time.Millisecond))
		s.recovers("kept", berthv1.VMState_VM_STATE_RUNNING)
	}
	// Since when it is silent, or that it was never heard, if this leader is a new one.
	s.answers([]string{"vm", "why-not-started", "there"}, 0, "vm/there is not started", dead.Name+" holds it, and ",
		"berth node fence "+dead.Name)
	for _, host := range s.lab.Hosts {
		for _, guest := range host.QEMUs() {
			if guest.Name == "there" {
				t.Errorf("what the dead host had runs on %s", host.Name)
			}
		}
	}
}

// Somebody moves a guest with virsh to a node that is not heard. Nobody starts it a second time, and the answer names the node; when that
// one is heard again the guest is followed there.
func TestAGuestThatWasMovedToASilentNodeIsNotStartedByHand(t *testing.T) {
	s := byHand(t)
	here, there := s.lab.Hosts[0], s.lab.Hosts[2]
	before := s.guest("moved", here)
	s.must(there.Pause(lab.Agent))
	s.node(there, time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	s.virsh(here, "migrate", "--live", "--p2p", "--tls", "moved", "qemu+tls://"+there.Name+"/system")

	refused := func(args ...string) {
		t.Helper()
		s.within(lookLimit, "a start is refused with the name of the node", func() error {
			result := s.berth(args...)
			said := result.Stdout + result.Stderr
			if result.Code == 0 {
				t.Fatalf("berth %s: it is started a second time\n%s", strings.Join(args, " "), said)
			}
			for _, word := range []string{
				"nothing proves that VM \"moved\" runs nowhere", there.Name + " is silent for", "berth node fence " + there.Name,
			} {
				if !strings.Contains(said, word) {
					return fmt.Errorf("it does not say %q: %s", word, said)
				}
			}
			return nil
		})
	}
	refused("vm", "start", "moved")
	s.condition("moved", there.Name+", where somebody may have moved it, cannot be asked", "berth vm why-not-started moved")
	refused("vm", "start", "moved")
	s.answers([]string{"vm", "why-not-started", "moved"}, 0, "vm/moved is not started: "+there.Name+" is silent for",
		"what ends that: wait until "+there.Name+" answers", here.Name, "does not have it")

	s.must(there.Continue(lab.Agent))
	s.within(lookLimit, "it is followed", func() error {
		if vm, _ := s.show("moved"); vm.GetNode() != there.Name {
			return fmt.Errorf("it is on %q: %s", vm.GetNode(), vm.GetCondition())
		}
		return nil
	})
	s.recovers("moved", berthv1.VMState_VM_STATE_RUNNING)
	s.runsOnce("moved", there)
	s.sameGuest("moved", there, before)
	s.answers([]string{"vm", "why-not-started", "moved"}, 0, "not in need of a start: it runs on "+there.Name)
}
