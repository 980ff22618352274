package hostile

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

const (
	alice    = "/root/alice.yaml" // where the operator who is revoked has her certificate
	snapshot = "/root/before.snapshot"
)

// Somebody is revoked while she follows events on each of three coordinators, and a node and a coordinator are removed: they are out on
// all listeners of all of them, also of one that follows nobody, and a snapshot of before brings none of them back.
func TestWhoIsOutIsOutEverywhereAndStaysOut(t *testing.T) {
	s := raise(t)
	first := s.lab.Coordinators[0]
	token, err := s.lab.Token(t.Context(), "operator", "alice")
	s.check(err)
	s.does("--client-config", alice, "login", first.Address, token, "--name", "alice")
	for _, c := range s.lab.Coordinators {
		if why := s.refusesAlice(c); why != "" {
			t.Fatalf("before: %s", why)
		}
	}
	node, peer := s.lab.Hosts[1], s.lab.Coordinators[2]
	s.copyProgram(node.Machine, asker)
	s.copyProgram(peer.Machine, asker)
	for address, is := range s.ask(node.Machine, agentKeys, "agent") {
		if is.Session != in && !strings.Contains(is.Session, "redirect") {
			t.Errorf("before: %s tells the node %+v", address, is)
		}
	}
	for address, is := range s.ask(peer.Machine, peerKeys, "peer") {
		if is.API != in || is.Raft != in {
			t.Errorf("before: %s tells the coordinator %+v", address, is)
		}
	}
	s.does("coordinator", "snapshot", "save", snapshot)

	s.revokesWhatIsOpen()
	s.refusesWithoutALeader()

	s.check(node.StopAgent())
	s.does("node", "delete", node.Name, "--yes")
	s.does("coordinator", "delete", peer.Name, "--yes")
	if peer.Pid(lab.Berth) != 0 {
		s.check(peer.Stop())
	}
	s.out("removed", node, peer)
	s.does("coordinator", "snapshot", "restore", snapshot, "--yes")
	s.out("after the restore", node, peer)
	for _, c := range s.others(peer) {
		if why := s.refusesAlice(c); !strings.Contains(why, "revoked") {
			t.Errorf("after the restore alice is told %q by %s", why, c.Name)
		}
	}
}

// others are the coordinators but one.
func (s *site) others(than *lab.Coordinator) []*lab.Coordinator {
	return slices.DeleteFunc(slices.Clone(s.lab.Coordinators), func(c *lab.Coordinator) bool { return c == than })
}

// refusesAlice is what a coordinator answers alice instead of the status; empty: it answers her.
func (s *site) refusesAlice(c *lab.Coordinator) string {
	s.Helper()
	result, err := s.lab.CLI(s.Context(), "--client-config", alice, "--coordinator", c.Address, "identity", "list")
	s.check(err)
	if result.Code == 0 {
		return ""
	}
	return result.Stderr + "?"
}

// revokesWhatIsOpen has alice follow events on each coordinator, and revokes her.
func (s *site) revokesWhatIsOpen() {
	s.Helper()
	ended := make(chan string, len(s.lab.Coordinators))
	for _, c := range s.lab.Coordinators {
		following, err := s.lab.Operator.Command(s.Context(), "berth", "--client-config", alice, "--coordinator", c.Address,
			"events", "--follow", "--backlog", "1")
		s.check(err)
		out, err := following.StdoutPipe()
		s.check(err)
		s.check(following.Start())
		first := make([]byte, 1)
		_, err = out.Read(first) // it is open
		s.check(err)
		go func() {
			_, _ = io.Copy(io.Discard, out)
			_ = following.Wait() // it has been refused, which is what is waited for
			ended <- c.Name
		}()
	}
	select {
	case name := <-ended:
		s.Fatalf("what is open on %s has ended by itself", name)
	case <-time.After(2 * time.Second):
	}
	began := time.Now()
	s.does("identity", "revoke", "operator/alice", "--reason", "lost", "--yes")
	for range s.lab.Coordinators {
		select {
		case name := <-ended:
			s.Logf("what is open on %s has ended %v after it was begun to revoke her", name, time.Since(began).Round(10*time.Millisecond))
		case <-time.After(patience):
			s.Fatal("what a revoked operator has open goes on")
		}
	}
	for _, c := range s.lab.Coordinators {
		if why := s.refusesAlice(c); !strings.Contains(why, "revoked") {
			s.Errorf("alice is told %q by %s", why, c.Name)
		}
	}
}

// refusesWithoutALeader ends two of three coordinators, and starts them again.
func (s *site) refusesWithoutALeader() {
	s.Helper()
	for _, c := range s.lab.Coordinators[:2] {
		s.check(c.Kill())
	}
	last := s.lab.Coordinators[2]
	s.eventually("no leader", func() bool {
		result, err := s.lab.CLI(s.Context(), "--coordinator", last.Address, "token", "list")
		s.check(err)
		return result.Code == 5
	})
	if why := s.refusesAlice(last); !strings.Contains(why, "revoked") {
		s.Errorf("without a leader alice is told %q", why)
	}
	for _, c := range s.lab.Coordinators[:2] {
		s.check(c.Start(s.Context()))
	}
	s.check(s.lab.AwaitReady(s.Context()))
}

// ask is what the coordinators say to a certificate of a machine.
func (s *site) ask(from *lab.Machine, folder, name string) map[string]answers {
	s.Helper()
	argv := []string{asker, folder, name}
	for _, c := range s.lab.Coordinators {
		if c.Pid(lab.Berth) != 0 {
			argv = append(argv, c.Address)
		}
	}
	out, err := from.Exec(s.Context(), argv...)
	s.check(err)
	all := map[string]answers{}
	s.check(json.Unmarshal([]byte(out), &all))
	return all
}

// out fails unless a node and a coordinator that were removed are out on all listeners: the node may have a session without orders.
func (s *site) out(when string, node *lab.Host, peer *lab.Coordinator) {
	s.Helper()
	for address, is := range s.ask(node.Machine, agentKeys, "agent") {
		if is.API == in || is.Session == in || is.Raft == in {
			s.Errorf("%s: %s lets the node in: %+v", when, address, is)
		}
	}
	for address, is := range s.ask(peer.Machine, peerKeys, "peer") {
		if is.API == in || is.Session == in || is.Session == removed || is.Raft == in {
			s.Errorf("%s: %s lets the coordinator in: %+v", when, address, is)
		}
		s.Logf("%s: %s tells the coordinator %+v", when, address, is)
	}
}
