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

// fenceable plugs all hosts into a power strip that Berth can switch, until the end of the test.
func (s *site) fenceable() *lab.PowerStrip {
	s.Helper()
	strip, err := s.lab.PowerStrip()
	s.must(err)
	s.Cleanup(func() {
		for _, host := range s.lab.Hosts {
			s.must(ignore(s.lab.Berth(s.background(), "node", "set", host.Name, "--fence", "none")))
		}
		s.must(strip.Unplug())
	})
	for _, host := range s.lab.Hosts {
		s.does("node", "set", host.Name, "--fence", "command", "--fence-program", lab.FenceAgent, "--fence-arg", "plug="+host.Name)
	}
	return strip
}

// A guest that is highly available runs elsewhere once its host is proven to be off, and not a moment before: whether the
// host has died, or only hangs, nobody can tell from outside, so its power is cut.
func TestAHighlyAvailableGuestIsRestartedOnceItsDeadHostIsProvenToBeOff(t *testing.T) {
	begin(t).restartsElsewhere(func(host *lab.Host) error { return host.PowerOff() })
}

func TestAHighlyAvailableGuestIsRestartedOnceItsFrozenHostIsProvenToBeOff(t *testing.T) {
	begin(t).restartsElsewhere(func(host *lab.Host) error {
		err := errors.Join(host.Pause(lab.Agent), host.Pause(lab.Libvirtd))
		for _, guest := range host.QEMUs() {
			err = errors.Join(err, guest.Signal(unix.SIGSTOP))
		}
		return err
	})
}

// restartsElsewhere harms a host with two guests, of which one is highly available.
func (s *site) restartsElsewhere(harm func(*lab.Host) error) {
	s.Helper()
	strip := s.fenceable()
	host := s.lab.Hosts[0]
	s.does("vm", "start", "kept", "--memory", "64M", "--node", host.Name, "--ha")
	s.firmware("other", host)
	s.must(harm(host))
	// After an election a leader waits a minute before it believes that a node is silent.
	var again time.Time
	s.within(4*time.Minute, "the guest runs elsewhere", func() error {
		where, err := s.lab.HostOf("kept")
		if err == nil && (where == host || s.watch.Running("kept") != 1) {
			err = fmt.Errorf("it runs on %s", where.Name)
		}
		again = time.Now()
		return err
	})
	off := strip.Off(host)
	if off.IsZero() {
		s.Fatal("the guest was restarted, and nobody has switched its host off")
	}
	if took := again.Sub(off); took > time.Minute {
		s.Errorf("it runs again %s after its host was switched off", took)
	} else {
		s.Logf("it runs again %s after its host was switched off", took.Round(100*time.Millisecond))
	}
	for _, run := range s.watch.Runs() {
		if run.Name == "kept" && run.Host != host.Name && run.From.Before(off) {
			s.Errorf("it ran on %s before its host was switched off", run.Host)
		}
	}
	if vm, _ := s.show("other"); vm.GetState() == berthv1.VMState_VM_STATE_RUNNING {
		s.Errorf("a guest that is not highly available was restarted on %s", vm.GetNode())
	}
	s.must(s.mend(s.Context()))
	where, err := s.lab.HostOf("kept")
	s.must(err)
	s.runsOnce("kept", where)
}

// Silence is not death: with nothing that can prove more, a guest stays where it is, however highly available.
func TestASilentHostKeepsItsGuests(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	before := s.guest("kept", host)
	s.does("vm", "set", "kept", "--ha=true")
	s.must(host.CutLink(t.Context()))
	s.node(host, time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	if status := s.does("status"); !strings.Contains(status, host.Name+" is unreachable") {
		t.Errorf("the status does not name the node:\n%s", status)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		if where, err := s.lab.HostOf("kept"); err != nil || where != host {
			t.Fatalf("the guest is on %v: %v", where, err)
		}
	}
	s.must(host.RestoreLink(t.Context()))
	s.node(host, time.Minute, up)
	s.runsOnce("kept", host)
	s.sameGuest("kept", host, before)
	s.stops("kept")
}
