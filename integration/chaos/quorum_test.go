package chaos

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

// wake makes the agents look for the coordinators again. When none has answered for long they pause for up to half a
// minute, which a test that has seen what it came for need not wait for.
func (s *site) wake() {
	for _, host := range s.lab.Hosts {
		s.must(host.StopAgent())
		s.must(host.StartAgent(s.background()))
	}
}

func TestWithoutAQuorumNothingChangesAndEverythingRunsOn(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	before := s.guest("onward", host)
	first := s.killLeader()
	second := s.lab.Coordinators[0]
	if second == first {
		second = s.lab.Coordinators[1]
	}
	s.must(second.Kill())

	for _, args := range [][]string{
		{"vm", "start", "late", "--memory", "64M"},
		{"vm", "stop", "onward", "--force"},
	} {
		begun := time.Now()
		s.answers(args, 5, "leader", "next step: ", "berth status --stale")
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("berth %s took %s to say that there is no quorum", strings.Join(args, " "), took)
		} else {
			t.Logf("said so after %s", took.Round(100*time.Millisecond))
		}
	}
	s.answers([]string{"status", "--stale"}, 0, "coord")
	// Not one of the refused orders has reached a host.
	if running := s.watch.Running("onward"); running != 1 {
		t.Errorf("the guest is executed %d times", running)
	}
	s.sameGuest("onward", host, before)

	// An election takes a second or two, and the nodes' agents are there a moment later. The rest is for a busy machine.
	s.must(second.Start(t.Context()))
	s.within(10*time.Second, "a VM starts with two of three", func() error {
		result := s.berth("vm", "start", "late", "--memory", "64M")
		if result.Code != 0 {
			return errors.New(result.Stderr)
		}
		return nil
	})
	s.runsOnce("onward", host)
	s.sameGuest("onward", host, before)
	s.stops("onward")
}

func TestNoCoordinatorAtAllIsSaidAtOnce(t *testing.T) {
	s := begin(t)
	s.Cleanup(s.wake)
	for _, c := range s.lab.Coordinators {
		s.must(c.Kill())
	}
	begun := time.Now()
	args := []string{"vm", "start", "nowhere", "--memory", "64M"}
	s.answers(args, 5, "no coordinator answers", s.lab.Coordinators[0].Address, s.lab.Coordinators[2].Address, "next step: ")
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAMachineThatHasNotJoinedSaysHowTo(t *testing.T) {
	s := begin(t)
	operator := s.lab.Operator
	fresh := s.file("fresh.yaml", "data_dir: /var/tmp/fresh\n")
	s.says(
		operator, []string{"berth", "coordinator", "run", "--config", fresh}, 1, "/var/tmp/fresh", "berth coordinator init",
		"berth coordinator join",
	)
	s.says(operator, []string{"berth-agent", "run", "--config", "/var/tmp/nothing.yaml"}, 1, "/var/tmp/nothing.yaml", "berth-agent join")
	agent := s.file("agent.yaml", "data_dir: /var/tmp/fresh\ncoordinators: [10.77.0.11:7421]\n")
	s.says(operator, []string{"berth-agent", "run", "--config", agent}, 1, "not enrolled", "berth-agent join")
	s.says(operator, []string{"sh", "-c", "ls -A /var/tmp/fresh 2>/dev/null | grep ."}, 1)
	// A member never becomes a cluster of its own by accident.
	member := s.lab.Coordinators[1].Machine
	s.says(member, []string{"berth", "coordinator", "init"}, 1, "not empty", "coord2")
	s.refuse(refusal{"it is still the same cluster", []string{"vm", "show", "ghost"}, 4, nil})
}

func TestARemovedCoordinatorIsNotTakenInAgain(t *testing.T) {
	s := begin(t)
	leader, err := s.lab.Leader(t.Context())
	s.must(err)
	var gone *lab.Coordinator
	for _, c := range s.lab.Coordinators {
		if c != leader {
			gone = c
		}
	}
	s.must(gone.Stop())
	s.does("coordinator", "delete", gone.Name, "--yes")
	t.Cleanup(func() {
		// Back as a new member, by the way that the documents tell.
		ctx := s.background()
		if gone.Pid(lab.Berth) != 0 {
			s.must(gone.Kill())
		}
		s.must(ignore(gone.Exec(ctx, "rm", "-rf", "/var/lib/berth/coordinator")))
		token, err := s.lab.Token(ctx, "coordinator", gone.Name)
		s.must(err)
		s.must(gone.Join(ctx, leader, token))
		s.must(gone.Start(ctx))
	})
	already := len(gone.Log(lab.Berth))
	s.must(gone.Start(t.Context()))
	s.within(60*time.Second, "the removed coordinator says what it is", func() error {
		if text := gone.Log(lab.Berth)[already:]; !strings.Contains(text, "removed") {
			return errors.New(text)
		}
		return nil
	})
	// Who leads it may know still: then it passes the call on, and the leader refuses it.
	args := []string{"--coordinator", gone.Address, "vm", "list"}
	if result := s.berth(args...); result.Code == 1 {
		s.check(args, result, 1, "it was removed", "next step: ")
	} else {
		s.check(args, result, 5, "next step: ")
	}
	for _, fact := range s.facts() {
		if strings.Contains(fact, gone.Name) {
			t.Errorf("it is taken in again: %s", fact)
		}
	}
}
