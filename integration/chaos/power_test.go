package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W13. The power of a whole site fails, and its storage comes back later than its hosts. All that ran runs again, once, with
// high availability or without, in the order that was asked for; what somebody had stopped or never wants restarted stays off.
func TestAfterThePowerOfAllEveryGuestThatRanRunsAgain(t *testing.T) {
	s := begin(t)
	s.Cleanup(func() {
		for _, host := range s.lab.Hosts {
			_, _ = host.Exec(s.background(), "umount", lab.SharedPoolDir) // it is there if the test has come to its end
		}
		s.must(s.mend(s.background()))
		s.must(s.remove(s.background(), "stored"))
		s.must(ignore(s.lab.Berth(s.background(), "pool", "delete", "shared", "--yes")))
	})
	s.does("pool", "add", "shared", "--cluster", "default", "--scope", "shared")
	ran := []string{"kept", "plain", "stored"}
	s.does("vm", "start", "kept", "--memory", "64M", "--node", s.lab.Hosts[0].Name, "--ha")
	s.does("vm", "start", "plain", "--memory", "64M", "--node", s.lab.Hosts[1].Name)
	s.does("vm", "start", "once", "--memory", "64M", "--node", s.lab.Hosts[1].Name)
	s.does("vm", "set", "kept", "--label", "role-db")
	s.does("vm", "set", "plain", "--restart-after", "role-db")
	s.does("vm", "set", "once", "--restart", "never")
	s.does("vm", "start", "stored", "--memory", "64M", "--node", s.lab.Hosts[2].Name, "--root-size", "16M", "--pool", "shared")
	s.does("vm", "start", "resting", "--memory", "64M")
	s.does("vm", "stop", "resting", "--force")

	var off errgroup.Group
	for _, machine := range s.lab.Machines() {
		if machine != s.lab.Operator {
			off.Go(machine.PowerOff)
		}
	}
	s.must(off.Wait())
	dark := time.Now()
	var on errgroup.Group
	for _, coordinator := range s.lab.Coordinators {
		on.Go(func() error { return s.mendCoordinator(t.Context(), coordinator) })
	}
	for _, host := range s.lab.Hosts {
		on.Go(func() error {
			if err := host.PowerOn(t.Context()); err != nil {
				return err
			}
			if _, err := host.Exec(t.Context(), "mount", "-t", "tmpfs", "none", lab.SharedPoolDir); err != nil {
				return err
			}
			return s.mendHost(t.Context(), host)
		})
	}
	s.must(on.Wait())
	booted := time.Now()

	again := func(names ...string) {
		t.Helper()
		s.within(5*time.Minute-time.Since(booted), fmt.Sprintf("%s run again", strings.Join(names, ", ")), func() error {
			for _, name := range names {
				if running := s.watch.Running(name); running != 1 {
					return fmt.Errorf("%s is executed %d times", name, running)
				}
			}
			return nil
		})
		t.Logf("%s after the last host's boot", time.Since(booted).Round(100*time.Millisecond))
	}
	again("kept", "plain")
	s.condition("stored", "storage", "shared")
	time.Sleep(30 * time.Second) // tries that were counted would be used up by now
	for _, host := range s.lab.Hosts {
		s.must(ignore(host.Exec(t.Context(), "umount", lab.SharedPoolDir)))
	}
	again(ran...)
	began := map[string]time.Time{}
	for _, run := range s.watch.Runs() {
		if run.From.After(dark) {
			if !began[run.Name].IsZero() {
				t.Errorf("%s was started twice", run.Name)
			}
			began[run.Name] = run.From
		}
	}
	if !began["plain"].After(began["kept"]) || !began["once"].IsZero() {
		t.Errorf("they began at %v", began)
	}
	for _, name := range ran {
		s.recovers(name, berthv1.VMState_VM_STATE_RUNNING)
	}
	if vm, _ := s.show("resting"); vm.GetState() != berthv1.VMState_VM_STATE_STOPPED || s.watch.Running("resting") != 0 {
		t.Errorf("what was stopped is %s", vm.GetState())
	}
}

// FAULTS.md, W12. Two of three hosts are dark: too many for anything to be proven by itself. One word about their rack brings their guests
// back, and nothing happens before it.
func TestOneWordBringsTheGuestsOfADarkRackBack(t *testing.T) {
	s := begin(t)
	here, rack := s.lab.Hosts[0], s.lab.Hosts[1:]
	s.Cleanup(func() {
		for _, host := range rack {
			s.must(ignore(s.lab.Berth(s.background(), "node", "set", host.Name, "--reset", "label")))
		}
	})
	names := []string{"first", "second"}
	for i, host := range rack {
		s.does("node", "set", host.Name, "--label", "rack3")
		s.does("vm", "start", names[i], "--memory", "64M", "--node", host.Name, "--ha")
	}
	s.answers([]string{"node", "fence", "--label", "rack=3", "--confirmed-off", "--yes"}, 1, "nothing was fenced", "rack", rack[0].Name)
	for _, host := range rack {
		s.must(host.PowerOff())
	}
	for _, host := range rack {
		s.node(host, time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	}
	time.Sleep(10 * time.Second)
	for _, name := range names {
		if running := s.watch.Running(name); running != 0 {
			t.Fatalf("%s was restarted, and nobody has said that its host is off", name)
		}
		s.answers([]string{"vm", "why-not-started", name}, 0, "berth node fence ")
	}
	said := time.Now()
	s.does("node", "fence", "--label", "rack=3", "--confirmed-off", "--yes")
	s.within(time.Minute, "both run again", func() error {
		for _, name := range names {
			if where, err := s.lab.HostOf(name); err != nil || where != here {
				return fmt.Errorf("%s is on %v: %w", name, where, err)
			}
		}
		return nil
	})
	t.Logf("%s after the word", time.Since(said).Round(100*time.Millisecond))
	s.must(s.mend(t.Context()))
	for _, name := range names {
		s.runsOnce(name, here)
	}
}

// FAULTS.md, W14. Whatever host a guest starts on loses its power. It is restarted once more, and then only by a person.
func TestAGuestThatTakesItsHostsDownIsHeld(t *testing.T) {
	s := begin(t)
	s.does("vm", "start", "killer", "--memory", "64M", "--ha")
	var lost []string
	for range 2 {
		where, err := s.lab.HostOf("killer")
		s.must(err)
		s.must(where.PowerOff())
		lost = append(lost, where.Name)
		s.must(s.mendHost(t.Context(), where)) // it boots, which proves that the guest has ended
		if len(lost) == 1 {
			s.within(3*time.Minute, "it is restarted", func() error {
				if running := s.watch.Running("killer"); running != 1 {
					return fmt.Errorf("it is executed %d times", running)
				}
				return nil
			})
			s.recovers("killer", berthv1.VMState_VM_STATE_RUNNING)
		}
	}
	s.condition("killer", append(lost, "not restarted any more", "berth vm start killer")...)
	time.Sleep(30 * time.Second)
	if running := s.watch.Running("killer"); running != 0 {
		t.Fatal("it was restarted a third time")
	}
	s.startsAgain("killer")
	if vm, _ := s.show("killer"); vm.GetCondition() != "" {
		t.Errorf("after a person's word: %s", vm.GetCondition())
	}
}
