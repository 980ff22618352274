package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W19. Somebody says of a host that it is off, which is only cut off, and removes it. When it thaws its agent is listened to and
// given no orders: the copy that runs there is told of and suspended, and in the way of a start until then.
func TestARemovedNodeThatThawsIsToldOfAndItsCopiesAreSuspended(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[2]
	s.firmware("left", host)
	s.must(host.CutLink(t.Context()))
	s.node(host, time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	s.does("node", "fence", host.Name, "--confirmed-off", "--yes")
	s.within(time.Minute, "the node is removed", func() error {
		if result := s.berth("node", "delete", host.Name, "--yes"); result.Code != 0 {
			return fmt.Errorf("%s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
	s.Cleanup(func() { // it is a node again
		s.must(host.RestoreLink(s.background()))
		if host.Pid(lab.Agent) != 0 {
			s.must(host.StopAgent())
		}
		token, err := s.lab.Token(s.background(), "agent", host.Name)
		s.must(err)
		s.must(host.Enrol(s.background(), s.lab.Coordinators[0], token, "--force"))
		s.must(host.StartAgent(s.background()))
	})
	s.must(host.RestoreLink(t.Context()))
	s.within(time.Minute, "the status tells of the node and its copy", func() error {
		status := s.does("status")
		for _, words := range []string{
			"node " + host.Name + " was removed, and its agent speaks all the same", "it has copies of left (paused)",
		} {
			if !strings.Contains(status, words) {
				return fmt.Errorf("it does not say %q:\n%s", words, status)
			}
		}
		return nil
	})
	if state := strings.TrimSpace(s.virsh(host, "domstate", "left")); state != "paused" {
		t.Errorf("the copy is %s", state)
	}
	s.does("vm", "start", "left", "--node", s.lab.Hosts[0].Name)
	s.condition("left", "a copy of it is paused on "+host.Name, "virsh destroy left")
	if state := strings.TrimSpace(s.virsh(host, "domstate", "left")); state != "paused" {
		t.Errorf("the copy was ended or let run: it is %s", state)
	}
	s.virsh(host, "destroy", "left")
	s.runsOnce("left", s.lab.Hosts[0])
	s.within(time.Minute, "nothing is told of the copy any more", func() error {
		if status := s.does("status"); strings.Contains(status, "copies of left") {
			return fmt.Errorf("%s", status)
		}
		return nil
	})
}
