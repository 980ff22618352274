package chaos

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

const mebibyte = 1 << 20

// limit puts the directory of a service, which must not run, on a small disk of its own, until the end of the test.
func (s *site) limit(m *lab.Machine, service, directory string, bytes int64) {
	s.Helper()
	s.must(m.LimitDisk(s.Context(), directory, bytes))
	s.Cleanup(func() {
		if m.Pid(service) != 0 {
			s.must(m.Stop(service))
		}
		// What the service has promised to remember has to be there afterwards as well.
		const script = `set -e
rm -f "$1/lab-filler" && cp -a "$1" /run/lab/unlimited && umount "$1" &&
rm -rf "$1" && cp -a /run/lab/unlimited "$1" && rm -rf /run/lab/unlimited`
		s.must(ignore(m.Exec(s.background(), "sh", "-c", script, "unlimit-disk", directory)))
	})
}

// member waits until the named coordinator is reachable or not, as the others see it.
func (s *site) member(name string, reachable bool) {
	s.Helper()
	s.within(30*time.Second, fmt.Sprintf("coordinator %s is reachable: %t", name, reachable), func() error {
		var answer berthv1.ListMembersResponse
		if err := s.lab.Ask(s.Context(), &answer, "coordinator", "list"); err != nil {
			return err
		}
		for _, member := range answer.GetMembers() {
			if member.GetName() == name && member.GetReachable() == reachable {
				return nil
			}
		}
		return fmt.Errorf("the members are %v", answer.GetMembers())
	})
}

const coordinatorDirectory = "/var/lib/berth/coordinator"

func TestACoordinatorWhoseDiskIsFullDoesNotStopTheOthers(t *testing.T) {
	s := begin(t)
	for _, c := range s.lab.Coordinators {
		s.must(c.Stop())
		s.limit(c.Machine, lab.Berth, coordinatorDirectory, 64*mebibyte)
		s.must(c.Start(t.Context()))
		s.must(s.lab.AwaitReady(t.Context()))
	}
	s.sub("a follower ends with the reason, and comes back", func(s *site) {
		leader, err := s.lab.Leader(s.Context())
		s.must(err)
		c := s.lab.Coordinators[0]
		if c == leader {
			c = s.lab.Coordinators[1]
		}
		s.must(c.FillDisk(s.Context(), coordinatorDirectory))
		// Work for the log, until the disk is felt.
		s.within(60*time.Second, c.Name+" ends", func() error {
			s.does("node", "maintenance", "node3", "on")
			s.does("node", "maintenance", "node3", "off")
			if c.Pid(lab.Berth) != 0 {
				return errors.New("it still runs")
			}
			return nil
		})
		text := c.Log(lab.Berth)
		for _, word := range []string{"no space left on device", coordinatorDirectory} {
			if !strings.Contains(text[max(0, len(text)-2000):], word) {
				s.Errorf("its last words do not say %q: %s", word, text[max(0, len(text)-2000):])
			}
		}
		s.member(c.Name, false)
		s.does("vm", "start", "with-two-of-three", "--memory", "64M")
		// A start on a full disk does no harm either.
		s.says(c.Machine, []string{"berth", "coordinator", "run"}, 1, coordinatorDirectory, "no space left on device")
		s.must(c.FreeDisk(coordinatorDirectory))
		s.must(c.Start(s.Context()))
		s.member(c.Name, true)
		s.must(s.lab.AwaitReady(s.Context()))
	})
	s.sub("a leader hands over", func(s *site) {
		leader, err := s.lab.Leader(s.Context())
		s.must(err)
		s.must(leader.FillDisk(s.Context(), coordinatorDirectory))
		begun := time.Now()
		s.within(20*time.Second, "a VM starts although the leader's disk is full", func() error {
			result := s.berth("vm", "start", "after", "--memory", "64M")
			if done := strings.Contains(result.Stderr, `"after" runs already`); result.Code != 0 && !done { // whose answer was lost with the leader
				return fmt.Errorf("exit code %d: %s", result.Code, result.Stderr)
			}
			return nil
		})
		s.Logf("a write went through after %s", time.Since(begun).Round(100*time.Millisecond))
		if now, err := s.lab.Leader(s.Context()); err != nil || now == leader {
			s.Errorf("%s leads with a full disk: %v", leader.Name, err)
		}
	})
}

// smallJournal puts the journal of a host's agent on a disk with little room, and returns how to fill that.
func (s *site) smallJournal(host *lab.Host) (fill func()) {
	s.Helper()
	const directory = "/var/lib/berth/agent"
	s.must(host.StopAgent())
	s.limit(host.Machine, lab.Agent, directory, mebibyte)
	s.must(ignore(host.Exec(s.Context(), "rm", directory+"/journal.db"))) // it may have room in it
	s.must(host.StartAgent(s.Context()))
	s.node(host, 20*time.Second, up)
	return func() {
		s.Helper()
		s.must(host.FillDisk(s.Context(), directory))
		s.Cleanup(func() { s.must(host.FreeDisk(directory)) })
	}
}

// The guest runs on where it is, and a drain takes it to a node that can promise to let it run.
func TestADrainGoesPastATargetWhoseJournalIsFull(t *testing.T) {
	s := begin(t)
	source, target, third := s.lab.Hosts[0], s.lab.Hosts[1], s.lab.Hosts[2]
	fill := s.smallJournal(target)
	before := s.guest("mover", source)
	move := s.starts("vm", "migrate", "mover", "--to", target.Name, "--bandwidth", "3M")
	s.within(30*time.Second, "memory is copied", func() error {
		if _, op := s.show("mover"); op.GetPhase() != "copying" {
			return fmt.Errorf("it is %s", op.GetPhase())
		}
		return nil
	})
	fill()
	op := s.ended("mover", 2*time.Minute)
	failed := op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_FAILED
	if !failed || !strings.Contains(op.GetMessage(), "given up before the hand-over") {
		t.Errorf("the migration ended %s: %s", op.GetResult(), op.GetMessage())
	}
	move.ends(1, "journal takes no entry", "next step: ")
	s.runsOnce("mover", source)
	s.sameGuest("mover", source, before)
	s.answers([]string{"status"}, 0, target.Name+" gets no VMs: its agent's journal takes no entry", "free space on its disk")
	s.answers([]string{"vm", "migrate", "mover", "--to", target.Name}, 2, "the node is degraded: its agent's journal takes no entry")
	s.does("node", "drain", source.Name, "--yes")
	s.runsOnce("mover", third)
	s.sameGuest("mover", third, before)
	s.does("node", "undrain", source.Name)
}

func TestAStartWaitsForAnAgentWhoseJournalTakesNoEntry(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	const directory = "/var/lib/berth/agent"
	s.must(host.StopAgent())
	s.limit(host.Machine, lab.Agent, directory, mebibyte)
	// A journal with room in it would take what there is to write for a while.
	s.must(ignore(host.Exec(t.Context(), "rm", directory+"/journal.db")))
	s.must(host.FillDisk(t.Context(), directory))
	s.says(host.Machine, []string{"berth-agent", "run"}, 1, directory, "no space left on device")
	s.must(host.FreeDisk(directory))
	s.must(host.StartAgent(t.Context()))
	s.node(host, 20*time.Second, up)
	s.must(host.FillDisk(t.Context(), directory))

	// A refusal by such a journal proves nothing: the same order may be carried out once there is room. So the start waits.
	var waits *berthv1.Operation
	var there string
	var before []string // for as long as the journal has room in it
	for n := range 8 {
		there = fmt.Sprintf("there%d", n)
		s.does("vm", "start", there, "--memory", "64M", "--node", host.Name, "--no-wait")
		s.within(20*time.Second, "the start is done, or waits for the journal", func() error {
			if _, waits = s.show(there); waits.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE && !strings.Contains(
				waits.GetMessage(), "journal",
			) {
				return fmt.Errorf("it is %s: %s", waits.GetPhase(), waits.GetMessage())
			}
			return nil
		})
		if waits.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
			break
		}
		before = append(before, there)
	}
	if says := waits.GetMessage(); !strings.Contains(says, "no space left on device") || !strings.Contains(says, "free space") {
		t.Errorf("it waits, and says %q", says)
	}
	// It may have been carried out, if only the answer found no room. Either way it ends when there is some.
	s.must(host.FreeDisk(directory))
	if op := s.ended(there, time.Minute); op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
		t.Errorf("with room in the journal it ended as %s: %s", op.GetResult(), op.GetMessage())
	}
	for _, vm := range append(before, there) {
		s.runsOnce(vm, host)
	}
}
