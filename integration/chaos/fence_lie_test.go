package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// alone cuts a host from all coordinators, and from nobody else.
func (s *site) alone(host *lab.Host) {
	s.Helper()
	for _, c := range s.lab.Coordinators {
		s.must(s.lab.Partition(s.Context(), host.Machine, c.Machine))
	}
}

// held waits until a silent host is held, and says why.
func (s *site) held(host *lab.Host, says string) {
	s.Helper()
	s.within(4*time.Minute, "the status says why "+host.Name+" is not fenced", func() error {
		if status := s.berth("status"); !strings.Contains(status.Stdout, says) {
			return fmt.Errorf("want %q in the status:\n%s", says, status.Stdout)
		}
		return nil
	})
}

// stays makes sure for a while that a guest runs on where it is, and nowhere else.
func (s *site) stays(name string, host *lab.Host, lasts time.Duration) {
	s.Helper()
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); time.Sleep(time.Second) {
		if where, err := s.lab.HostOf(name); err != nil || where != host || s.watch.Running(name) != 1 {
			s.Fatalf("the guest is on %v, %d times: %v", where, s.watch.Running(name), err)
		}
	}
}

// A host is cut off from the coordinators, and its device says that it is off while it runs on. The other hosts still reach it.
func TestADeviceThatLiesIsNotBelievedWhileOtherHostsReachTheMachine(t *testing.T) {
	s := begin(t)
	strip := s.fenceable()
	host := s.lab.Hosts[0]
	before := s.guest("kept", host)
	s.does("vm", "set", "kept", "--ha=true")
	strip.Lie(host)
	s.alone(host)
	s.held(host, fmt.Sprintf("%s says that it is off, and node", lab.FenceAgent))
	if status := s.does("status"); !strings.Contains(status, "still reached it at ") || !strings.Contains(status, "--confirmed-off") {
		t.Errorf("the status does not say what is wrong and what next:\n%s", status)
	}
	s.stays("kept", host, 30*time.Second)
	if strip.Lies() == 0 {
		t.Error("its device was never asked")
	}
	s.must(s.lab.Heal(s.Context()))
	s.node(host, time.Minute, up)
	s.runsOnce("kept", host)
	s.sameGuest("kept", host, before)
	s.stops("kept")
}

// The plugs of two hosts are swapped: the device of one, which is only cut off, takes the power from the other.
func TestSwappedPlugsProveNothing(t *testing.T) {
	s := begin(t)
	strip := s.fenceable()
	host, other := s.lab.Hosts[0], s.lab.Hosts[1]
	s.does("node", "set", other.Name, "--fence", "none")
	s.does("node", "set", host.Name, "--fence", "command", "--fence-program", lab.FenceAgent, "--fence-arg", "plug="+other.Name)
	refused := s.berth("node", "set", other.Name, "--fence", "command", "--fence-program", lab.FenceAgent, "--fence-arg", "plug="+other.Name)
	if refused.Code == 0 || !strings.Contains(refused.Stderr, "switches off node "+host.Name) {
		t.Errorf("two nodes with one plug: %+v", refused)
	}
	before := s.guest("kept", host)
	s.does("vm", "set", "kept", "--ha=true")
	s.alone(host)
	s.held(host, "its fence device has perhaps switched off "+other.Name+" in its place")
	if strip.Off(other).IsZero() || !strip.Off(host).IsZero() {
		t.Errorf("switched off: %s at %s, %s at %s", host.Name, strip.Off(host), other.Name, strip.Off(other))
	}
	s.stays("kept", host, 20*time.Second)
	s.must(s.mend(s.Context()))
	s.runsOnce("kept", host)
	s.sameGuest("kept", host, before)
	s.stops("kept")
}

// A host with two power supplies is off when both of its plugs are.
func TestAHostWithTwoPowerSuppliesIsOffWhenBothAre(t *testing.T) {
	s := begin(t)
	strip := s.fenceable()
	host := s.lab.Hosts[0]
	s.must(strip.TwoSupplies(host))
	s.does("node", "set", host.Name, "--fence", "command", "--fence-program", lab.FenceAgent, "--fence-arg", "plug="+host.Name,
		"--fence-program", lab.FenceAgent, "--fence-arg", "plug="+lab.SecondPlug(host))
	check := s.does("node", "fence", host.Name, "--check")
	for _, plug := range []string{host.Name, lab.SecondPlug(host)} {
		if !strings.Contains(check, lab.FenceAgent+" plug="+plug+": on") {
			t.Errorf("the check does not tell of plug %s: %s", plug, check)
		}
	}
	s.does("vm", "start", "kept", "--memory", "64M", "--node", host.Name, "--ha")
	s.must(host.Pause(lab.Agent))
	s.within(4*time.Minute, "the guest runs elsewhere", func() error {
		where, err := s.lab.HostOf("kept")
		if err == nil && (where == host || s.watch.Running("kept") != 1) {
			err = fmt.Errorf("it runs on %s", where.Name)
		}
		return err
	})
	off := strip.Off(host)
	if off.IsZero() {
		t.Fatal("the guest was restarted, and its host has power")
	}
	for _, run := range s.watch.Runs() {
		if run.Name == "kept" && run.Host != host.Name && run.From.Before(off) {
			t.Errorf("it ran on %s before both plugs were off", run.Host)
		}
	}
}

// While somebody works on the site and has said so, nothing is switched off and nothing restarted; then all goes its way.
func TestWhileHAIsPausedADeadHostIsLeftAlone(t *testing.T) {
	s := begin(t)
	strip := s.fenceable()
	host := s.lab.Hosts[0]
	s.does("vm", "start", "kept", "--memory", "64M", "--node", host.Name, "--ha")
	s.does("ha", "pause", "--reason", "new switches")
	s.Cleanup(func() { s.must(ignore(s.lab.Berth(s.background(), "ha", "resume"))) })
	s.must(host.PowerOff())
	s.node(host, time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	for deadline := time.Now().Add(model.DefaultFenceAfter + 75*time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		if running := s.watch.Running("kept"); running != 0 || !strip.Off(host).IsZero() {
			t.Fatalf("the guest runs %d times, its host was switched off at %s", running, strip.Off(host))
		}
	}
	status := s.does("status")
	for _, says := range []string{
		"high availability is paused by ", ": new switches: nothing is fenced or restarted by itself", "berth ha resume",
	} {
		if !strings.Contains(status, says) {
			t.Errorf("want %q in the status:\n%s", says, status)
		}
	}
	s.does("ha", "resume")
	s.within(2*time.Minute, "the guest runs elsewhere", func() error {
		_, err := s.lab.HostOf("kept")
		return err
	})
	if strip.Off(host).IsZero() {
		t.Error("the guest was restarted, and nobody has switched its host off")
	}
}
